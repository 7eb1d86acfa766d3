/** The outbox: a list in the chat's document (D2). Intents are written in a commit; settling never undoes `sent`. */
import { Outbox, type Damage, type OutboxEntry } from '@botmesh/core'
import { setEntriesAside } from './damage.js'
import { each, either, lit, listOf } from './expressions.js'
import { IDEMPOTENT, type MongoLink } from './mongo-link.js'
import { escapeName } from './names.js'
import { readSend } from './read-chat.js'

export class MongoOutbox extends Outbox {
  constructor(private readonly link: MongoLink) {
    super()
  }

  entries(chatKey: string): Promise<OutboxEntry[]> {
    return this.link.run('entries', chatKey, IDEMPOTENT, async (collections) => {
      const document = await collections.chats.findOne(
        { _id: escapeName(chatKey) },
        { projection: { outbox: 1 } },
      )
      const damaged: Damage[] = []
      const entries = (document?.outbox ?? []).flatMap((send) => readSend(chatKey, send, damaged) ?? [])
      for (const one of damaged)
        this.link.options.logger.error({ ...one }, 'an outbox entry cannot be read and was moved aside')
      if (document) await setEntriesAside(collections, chatKey, document, damaged)
      return entries
    })
  }

  async settle(chatKey: string, key: string, outcome: Parameters<Outbox['settle']>[2]): Promise<void> {
    const k = escapeName(key)
    const set =
      outcome.status === 'sent'
        ? { status: 'sent', sent: lit(JSON.stringify(outcome.sent)), error: null }
        : { status: outcome.status, error: lit(JSON.stringify(outcome.error)) }
    const open = { $and: [{ $eq: ['$$one.k', lit(k)] }, { $ne: ['$$one.status', 'sent'] }] }
    const outbox = each(listOf('outbox'), either(open, { $mergeObjects: ['$$one', set] }, '$$one'))
    const filter = { _id: escapeName(chatKey), outbox: { $elemMatch: { k, status: { $ne: 'sent' } } } }
    await this.link.run('settle', chatKey, IDEMPOTENT, ({ chats }) =>
      chats.updateOne(filter, [{ $set: { outbox } }]),
    )
  }
}
