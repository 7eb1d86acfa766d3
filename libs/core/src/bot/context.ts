/** What handlers get (B2): placeholder of the type, filled by the bot's own work. */
export abstract class MessageContext {
  abstract readonly chatId: string
}
