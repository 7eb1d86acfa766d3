/** Public face of `@botmesh/telegram`. */
export { TelegramProvider } from './telegram.provider.js'
export type { TelegramOptions, TelegramWebhook } from './options.js'
export { parseInbound, updateIdOf, type InboundContext, type TelegramEvent } from './parse-inbound.js'
export { renderEdit, renderOutbound, renderTyping, type ApiCall } from './render-outbound.js'
