/** Public face of `@botmesh/messenger`. */
export { MessengerProvider } from './messenger.provider.js'
export type { MessengerOptions } from './options.js'
export { parseInbound } from './parse-inbound.js'
export { renderOutbound } from './render-outbound.js'
export type { PageEvent as MessengerEvent, PageReceipt as MessengerReceipt } from '@botmesh/meta/page'
