/** Public face of `@botmesh/discord`. */
export { DiscordProvider } from './discord.provider.js'
export type { DiscordCommand, DiscordOptions } from './options.js'
export {
  parseInbound,
  type DiscordEvent,
  type InboundContext,
  type PendingInteraction,
} from './parse-inbound.js'
export { renderOutbound, type RenderedMessage } from './render-outbound.js'
