/** A double of WhatsApp Web: see `whatsapp-web.double.ts`. */
export { WhatsAppWebDouble, type DoubleAccount } from './whatsapp-web.double.js'
export { SignalPerson } from './signal-person.js'
export { doubleRootKey, trustDoubleCertificates } from './noise-link.js'
export { MediaServer } from './media-server.js'
