/**
 * `@botmesh/meta/page`: what `@botmesh/messenger` and `@botmesh/instagram` are made of. Their own faces are what
 * applications use; this one may change with them.
 */
export { PageProvider } from './page.provider.js'
export { readPageOptions, type PageOptions, type PageSettings } from './page-options.js'
export { inboundParser, type PageContext, type PageEvent, type PageReceipt } from './page-inbound.js'
export { outboundRenderer, type PageRenderOptions } from './page-outbound.js'
export type { PagePlatform } from './platform.js'
export { MIB } from '../media-upload.js'
export type { GraphOptions } from '../graph-options.js'
