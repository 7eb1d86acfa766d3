/** Public face of `@botmesh/meta`. */
export { MetaProvider } from './meta.provider.js'
export type { MetaOptions } from './options.js'
export { parseInbound, type MetaEvent, type MetaStatus } from './parse-inbound.js'
export { renderMessages, renderOutbound, renderReadMark } from './render-outbound.js'
export { GraphClient, type GraphCall, type GraphSettings } from './graph-client.js'
export { judgeGraphError, type GraphVerdict } from './graph-errors.js'
