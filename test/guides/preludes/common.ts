/** What blocks of the documents may take for granted. */
import type { Bot, Coordinator, LockStore, Message, MessageContext, Provider } from '@botmesh/core'
import type { RedisStore } from '@botmesh/redis-store'
import type { WebchatProvider } from '@botmesh/webchat'

export declare const provider: Provider
export declare const chat: WebchatProvider
export declare const store: RedisStore
export declare const coordinator: Coordinator
export declare const bot: Bot
export declare const ctx: MessageContext
export declare const message: Message
export declare const locks: LockStore
export declare const log: {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}
export declare function sendReport(signal: AbortSignal): Promise<void>
export declare function charge(order: object): Promise<void>
export { Bot, MemoryStore } from '@botmesh/core'
export { RedisStore } from '@botmesh/redis-store'
// Later blocks of a README go on from the import of its first one.
export { RedisCoordinator } from '@botmesh/redis-store'
export { PostgresStore } from '@botmesh/postgres-store'
export { MySQLStore } from '@botmesh/mysql-store'
export { SQLiteStore } from '@botmesh/sqlite-store'
export { MongoStore } from '@botmesh/mongo-store'
export { BaileysProvider } from '@botmesh/baileys'
export { DiscordProvider } from '@botmesh/discord'
export { EmailProvider } from '@botmesh/email'
export { InstagramProvider } from '@botmesh/instagram'
export { MessengerProvider } from '@botmesh/messenger'
export { MetaProvider } from '@botmesh/meta'
export { TelegramProvider } from '@botmesh/telegram'
export { WebchatProvider } from '@botmesh/webchat'
