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
    attach: 'Send a file',
    fileSent: 'File',
    'file-size': 'Not sent: the file is larger than {limit}.',
    'file-type': 'Not sent: files of this type are not accepted.',
    'file-empty': 'Not sent: the file is empty.',
    'files-off': 'Not sent: files are not accepted here.',
    'file-lost': 'Not sent: the file could not be transferred. Please try again.',
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
    attach: 'Enviar un archivo',
    fileSent: 'Archivo',
    'file-size': 'No enviado: el archivo supera los {limit}.',
    'file-type': 'No enviado: no se aceptan archivos de este tipo.',
    'file-empty': 'No enviado: el archivo está vacío.',
    'files-off': 'No enviado: aquí no se aceptan archivos.',
    'file-lost': 'No enviado: no se pudo transferir el archivo. Inténtalo de nuevo.',
    me: 'Tú',
    bot: 'Respuesta',
    choices: 'Respuestas rápidas',
    file: 'Abrir archivo',
  },
}

/** A size for people: bytes, whole kilobytes, or megabytes with one decimal. */
export function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${Math.floor(bytes / 1024).toLocaleString(language)} kB`
  return `${(bytes / 1024 / 1024).toLocaleString(language, { maximumFractionDigits: 1 })} MB`
}

export const language = /^es\b/i.test(navigator.language) ? 'es' : 'en'
export const texts = TEXTS[language]
