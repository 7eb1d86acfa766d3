/** What the pairing page says, in Spanish and English. */
import type { Language } from '../texts.js'

const es = {
  title: 'Vincular WhatsApp',
  qr: 'Escanea este código QR con el teléfono: WhatsApp, Ajustes, Dispositivos vinculados, Vincular un dispositivo.',
  qrAlt: 'Código QR que vincula la tienda con un teléfono. Cambia cada poco; esta página lo renueva sola.',
  code: 'Escribe este código en el teléfono: WhatsApp, Ajustes, Dispositivos vinculados, Vincular con número de teléfono.',
  codeLabel: (letters: string) => `Código de vinculación: ${letters}`,
  connected: 'WhatsApp está conectado. No hay nada que hacer.',
  connecting: 'Conectando con WhatsApp: si hace falta un código, aparecerá aquí.',
  closed: (reason: string) =>
    `WhatsApp ha cerrado la conexión y no se reintenta (${reason}). Mira el registro.`,
  unreachable: 'No se puede consultar el estado; se vuelve a intentar.',
}

const en: typeof es = {
  title: 'Pair WhatsApp',
  qr: 'Scan this QR code with the phone: WhatsApp, Settings, Linked devices, Link a device.',
  qrAlt: 'QR code that pairs the shop with a phone. It changes now and then; this page renews it by itself.',
  code: 'Type this code on the phone: WhatsApp, Settings, Linked devices, Link with phone number.',
  codeLabel: (letters) => `Pairing code: ${letters}`,
  connected: 'WhatsApp is connected. There is nothing to do.',
  connecting: 'Connecting to WhatsApp: if a code is needed, it appears here.',
  closed: (reason) =>
    `WhatsApp has closed the connection and it is not tried again (${reason}). See the log.`,
  unreachable: 'The state cannot be asked for; it is tried again.',
}

export type PairingTexts = typeof es

export function pairingTexts(language: Language): PairingTexts {
  return language === 'en' ? en : es
}

/** What the browser prefers; Spanish if it is neither. */
export function languageOfBrowser(accepted: string | undefined): Language {
  const [first] = /\b(es|en)\b/i.exec(accepted ?? '') ?? []
  return first?.toLowerCase() === 'en' ? 'en' : 'es'
}
