/** The outbox: a row a send (D2). Intents are written in a commit; settling is one statement that never undoes `sent`. */
import { sql, type RawBuilder, type Transaction } from 'kysely'
import { Outbox, type OutboxEntry } from '@botmesh/core'
import { setEntriesAside } from './damage.js'
import type { SqlFlavor } from './flavor.js'
import { escapeName } from './names.js'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import { slot, type Statements } from './statements.js'
import { readOutboxEntry, type Damage } from './stored-values.js'
import type { OutboxTable, Tables } from './tables.js'

const IDEMPOTENT: CallRules = { idempotent: true }
const COLUMNS = ['content', 'sent', 'error', 'status', 'hash'] as const

export class SqlOutbox extends Outbox {
  constructor(
    private readonly link: SqlLink,
    private readonly statements: Statements,
  ) {
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
    const { rows } = await this.statements.run(db, 'outbox', { chat: escapeName(chatKey) }, (on) =>
      on
        .selectFrom('outbox')
        .select(['chat', 'name', 'hash', 'content', 'status', 'sent', 'error'])
        .where('chat', '=', slot<string>('chat'))
        .orderBy('name')
        .compile(),
    )
    return rows.flatMap((row) => readOutboxEntry(row, damaged) ?? [])
  }

  /** Writes entries, in one statement. One that is known to be sent is not undone by an older view of the same content. */
  async write(tx: Transaction<Tables>, chat: string, entries: readonly OutboxEntry[]): Promise<void> {
    // One statement may meet a key once only: the last entry of a key is what counts.
    const byName = new Map(entries.map((entry) => [entry.key, outboxRow(chat, entry)]))
    const names = ['chat', 'name', 'hash', 'content', 'status', 'sent', 'error'] as const
    const rows = [...byName.values()].map((row) => sql`(${sql.join(names.map((name) => row[name]))})`)
    const columns = sql.join(names.map((name) => sql.ref(name)))
    const { flavor } = this.link.options
    await sql`insert into ${sql.table('outbox')} (${columns}) values ${sql.join(rows)} ${outboxUpsert(flavor)}`.execute(
      tx,
    )
  }

  async forget(tx: Transaction<Tables>, chat: string, keys: readonly string[]): Promise<void> {
    await tx.deleteFrom('outbox').where('chat', '=', chat).where('name', 'in', keys.map(escapeName)).execute()
  }
}

export function outboxRow(
  chat: string,
  { key, hash, content, status, sent, error }: OutboxEntry,
): OutboxTable {
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

/** What an insert does where a row with the entry's name stands already: the end of the statement. */
export function outboxUpsert({ kind }: SqlFlavor): RawBuilder<unknown> {
  const list = (value: (column: RawBuilder<unknown>) => RawBuilder<unknown>) =>
    sql.join(COLUMNS.map((name) => sql`${sql.ref(name)} = ${value(sql.ref(name))}`))
  const outbox = sql.table('outbox')
  if (kind !== 'mysql') {
    const known = sql`${outbox}.status <> 'sent' or ${outbox}.hash <> excluded.hash`
    return sql`on conflict (chat, ${sql.ref('name')}) do update set ${list((column) => sql`excluded.${column}`)} where ${known}`
  }
  // MySQL assigns from left to right: what the condition reads comes last, and the hash, which decides, last of all.
  return sql`on duplicate key update ${list((column) => sql`if(status = 'sent' and hash = values(hash), ${column}, values(${column}))`)}`
}
