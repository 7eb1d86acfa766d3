/** Public face of `@botmesh/instagram`. */
export { InstagramProvider } from './instagram.provider.js'
export type { InstagramOptions } from './options.js'
export { parseInbound } from './parse-inbound.js'
export { renderOutbound } from './render-outbound.js'
export type { PageEvent as InstagramEvent, PageReceipt as InstagramReceipt } from '@botmesh/meta/page'
