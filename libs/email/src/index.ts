/** Public face of `@botmesh/email`. */
export { EmailProvider } from './email.provider.js'
export type { EmailOptions, MailServer } from './options.js'
export type { Ingested } from './ingest-session.js'
export { parseInbound, type EmailEvent, type RawMail, type ThreadState } from './parse-inbound.js'
export { readMail, type Mail, type MailFile } from './read-mail.js'
export { renderOutbound, renderText, type Letter } from './render-outbound.js'
export { cutQuoted } from './reply-text.js'
export { whyNotAnswered, type Self } from './manners.js'
