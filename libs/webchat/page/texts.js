// What the page itself says, in the visitor's language: English unless the browser prefers Spanish.
const TEXTS = {
  en: {
    label: 'Write a message',
    send: 'Send',
    messages: 'Conversation',
    connecting: 'Connecting…',
    online: 'Connected',
    offline: 'No connection. Trying again…',
    outdated: 'This page is out of date. Please reload it.',
    typing: 'Typing',
    pending: 'Sending…',
    sent: 'Sent',
    failed: 'Not sent: the message is too long.',
    me: 'You',
    bot: 'Answer',
    choices: 'Quick answers',
    file: 'Open file',
  },
  es: {
    label: 'Escribe un mensaje',
    send: 'Enviar',
    messages: 'Conversación',
    connecting: 'Conectando…',
    online: 'Conectado',
    offline: 'Sin conexión. Reintentando…',
    outdated: 'Esta página está desactualizada. Vuelve a cargarla.',
    typing: 'Escribiendo',
    pending: 'Enviando…',
    sent: 'Enviado',
    failed: 'No enviado: el mensaje es demasiado largo.',
    me: 'Tú',
    bot: 'Respuesta',
    choices: 'Respuestas rápidas',
    file: 'Abrir archivo',
  },
}

export const language = /^es\b/i.test(navigator.language) ? 'es' : 'en'
export const texts = TEXTS[language]
