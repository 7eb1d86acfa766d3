/** The bot that `./bot.js` is in the documents: examples/plain-bot. */
import type { Bot, BotConfig } from '@botmesh/core'

export declare function createBot(config: BotConfig): Bot
