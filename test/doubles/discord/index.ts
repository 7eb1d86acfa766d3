/** The double of Discord, and the people and places that its tests share. */
export {
  BOT_ID,
  CHANNEL,
  DiscordDouble,
  DM,
  GUILD,
  LUCIA,
  TOKEN,
  type DiscordCall,
  type DiscordFault,
} from './discord-double.js'
export type { GatewayDouble } from './gateway.js'
