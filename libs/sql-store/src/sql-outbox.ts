/** The outbox: a row a send (D2). Intents are written in a commit; settling is one statement that never undoes `sent`. */
import { sql, type RawBuilder, type Transaction } from 'kysely'
import { Outbox, type OutboxEntry } from '@botmesh/core'
import { setEntriesAside } from './damage.js'
import { escapeName } from './names.js'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import { readOutboxEntry, type Damage } from './stored-values.js'
import type { OutboxTable, Tables } from './tables.js'

const IDEMPOTENT: CallRules = { idempotent: true }
const COLUMNS = ['content', 'sent', 'error', 'status', 'hash'] as const

export class SqlOutbox extends Outbox {
  constructor(private readonly link: SqlLink) {
    super()
  }

  entries(chatKey: string): Promise<OutboxEntry[]> {
    return this.link.run('entries', chatKey, IDEMPOTENT, async (db) => {
      const damaged: Damage[] = []
      const entries = await this.read(db, chatKey, damaged)
      const { flavor, logger } = this.link.options
      for (const one of damaged)
        logger.error({ ...one }, 'an outbox entry cannot be read and was moved aside')
      await setEntriesAside(db, flavor, chatKey, damaged)
      return entries
    })
  }

  async settle(chatKey: string, key: string, outcome: Parameters<Outbox['settle']>[2]): Promise<void> {
    const set =
      outcome.status === 'sent'
        ? { status: 'sent', sent: JSON.stringify(outcome.sent), error: null }
        : { status: outcome.status, error: JSON.stringify(outcome.error) }
    await this.link.run('settle', chatKey, IDEMPOTENT, (db) =>
      db
        .updateTable('outbox')
        .set(set)
        .where('chat', '=', escapeName(chatKey))
        .where('name', '=', escapeName(key))
        .where('status', '<>', 'sent')
        .execute(),
    )
  }

  async read(db: Session, chatKey: string, damaged: Damage[]): Promise<OutboxEntry[]> {
    const rows = await db
      .selectFrom('outbox')
      .selectAll()
      .where('chat', '=', escapeName(chatKey))
      .orderBy('name')
      .execute()
    return rows.flatMap((row) => readOutboxEntry(row, damaged) ?? [])
  }

  /** Writes entries, in one statement. One that is known to be sent is not undone by an older view of the same content. */
  async write(tx: Transaction<Tables>, chat: string, entries: readonly OutboxEntry[]): Promise<void> {
    // One statement may meet a key once only: the last entry of a key is what counts.
    const byName = new Map(entries.map((entry) => [entry.key, rowOf(chat, entry)]))
    const insert = tx.insertInto('outbox').values([...byName.values()])
    if (this.link.options.flavor.kind === 'mysql') {
      await insert.onDuplicateKeyUpdate(MYSQL_SET).execute()
      return
    }
    await insert
      .onConflict((conflict) =>
        conflict
          .columns(['chat', 'name'])
          .doUpdateSet((eb) => ({
            content: eb.ref('excluded.content'),
            sent: eb.ref('excluded.sent'),
            error: eb.ref('excluded.error'),
            hash: eb.ref('excluded.hash'),
            status: eb.ref('excluded.status'),
          }))
          .where((eb) =>
            eb.or([
              eb(sql.ref('outbox.status'), '<>', 'sent'),
              eb(sql.ref('outbox.hash'), '<>', eb.ref('excluded.hash')),
            ]),
          ),
      )
      .execute()
  }

  async forget(tx: Transaction<Tables>, chat: string, keys: readonly string[]): Promise<void> {
    await tx.deleteFrom('outbox').where('chat', '=', chat).where('name', 'in', keys.map(escapeName)).execute()
  }
}

function rowOf(chat: string, { key, hash, content, status, sent, error }: OutboxEntry): OutboxTable {
  return {
    chat,
    name: escapeName(key),
    hash: escapeName(hash),
    content: JSON.stringify(content),
    status,
    sent: sent === undefined ? null : JSON.stringify(sent),
    error: error === undefined ? null : JSON.stringify(error),
  }
}

/** MySQL assigns from left to right: what the condition reads comes last, and the hash, which decides, last of all. */
const MYSQL_SET = Object.fromEntries(
  COLUMNS.map((column) => [
    column,
    sql`if(status = 'sent' and hash = values(hash), ${sql.ref(column)}, values(${sql.ref(column)}))`,
  ]),
) as Record<(typeof COLUMNS)[number], RawBuilder<string>>
