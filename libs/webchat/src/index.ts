/** Public face of `@botmesh/webchat`. */
export { WebchatProvider } from './webchat.provider.js'
export type { FileOptions, WebchatOptions } from './options.js'
export type { LoggedMessage, PageFrame, ServerFrame } from './protocol.js'
export { CLOSE, PROTOCOL_VERSION } from './protocol.js'
