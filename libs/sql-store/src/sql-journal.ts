/** The journal: a row a record, in the order in which the database numbered them (D1, D3). */
import { sql, type CompiledQuery, type RawBuilder, type UpdateObject } from 'kysely'
import { Journal, unreadableLetter, type DeadLetter, type JournalRecord, type Message } from '@botmesh/core'
import type { ChatRows } from './chat-rows.js'
import { escapeName, unescapeName } from './names.js'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import { slot, type Statements } from './statements.js'
import { readRecord, recordJson, type Damage } from './stored-values.js'
import { ACKNOWLEDGED, DEAD, PENDING, type Int, type Tables } from './tables.js'

const IDEMPOTENT: CallRules = { idempotent: true }
const ONCE: CallRules = { idempotent: false }

/** What a record is read from. Named, since a prepared statement may not change its columns. */
const RECORD = ['seq', 'chat', 'id', 'message', 'attempts', 'last_error', 'status', 'due_at'] as const

export class SqlJournal extends Journal {
  constructor(
    private readonly link: SqlLink,
    private readonly rows: ChatRows,
    private readonly statements: Statements,
  ) {
    super()
  }

  record(key: string, message: Message): Promise<'recorded' | 'duplicate'> {
    return this.link.run('record', key, IDEMPOTENT, (db) => this.insert(db, key, message))
  }

  /** One statement: the record goes in unless its id stands there or is committed. */
  async insert(db: Session, key: string, message: Message): Promise<'recorded' | 'duplicate'> {
    const id = escapeName(message.id)
    const values = { chat: escapeName(key), id, mark: `i:${id}`, message: recordJson(message) }
    const { changed } = await this.statements.run(db, 'record', values, (on) => this.insertion(on))
    return changed > 0 ? 'recorded' : 'duplicate'
  }

  private insertion(db: Session): CompiledQuery {
    const { nowMs, kind } = this.link.options.flavor
    const committed = db
      .selectFrom('marks')
      .select('name')
      .where('chat', '=', slot<string>('chat'))
      .where('name', '=', slot<string>('mark'))
      .where('until', '>', nowMs)
    const insert = db
      .insertInto('journal')
      .columns(['chat', 'id', 'message', 'due_at'])
      .expression(
        db
          .selectNoFrom([
            sql<string>`${slot('chat')}`.as('chat'),
            sql<string>`${slot('id')}`.as('id'),
            sql<string>`${slot('message')}`.as('message'),
            nowMs.as('due_at'),
          ])
          .where((eb) => eb.not(eb.exists(committed))),
      )
    return kind === 'mysql'
      ? insert.ignore().compile()
      : insert.onConflict((conflict) => conflict.doNothing()).compile()
  }

  oldest(key: string): Promise<JournalRecord | null> {
    const { flavor, logger } = this.link.options
    return this.link.run('oldest', key, IDEMPOTENT, async (db) => {
      for (;;) {
        const damaged: Damage[] = []
        const record = await this.readOldest(db, key, damaged)
        const [unreadable] = damaged
        if (record || !unreadable) return record
        // It would block its chat for ever: among the dead letters somebody can look at it.
        logger.error({ ...unreadable }, 'a journal record cannot be read and is given up')
        await db
          .updateTable('journal')
          .set({ status: DEAD, ended_at: flavor.nowMs, last_error: JSON.stringify('unreadable') })
          .where('chat', '=', escapeName(key))
          .where('id', '=', escapeName(unreadable.key.slice(key.length + 1)))
          .execute()
      }
    })
  }

  /** The oldest pending record; null and an entry in `damaged` if it cannot be read. */
  async readOldest(db: Session, key: string, damaged: Damage[]): Promise<JournalRecord | null> {
    const { rows } = await this.statements.run(db, 'oldest', { chat: escapeName(key) }, (on) =>
      on
        .selectFrom('journal')
        .select([...RECORD])
        .select(this.link.options.flavor.nowMs.as('now'))
        .where('chat', '=', slot<string>('chat'))
        .where('status', '=', sql.lit(PENDING))
        .orderBy('seq')
        .limit(sql.lit(1))
        .compile(),
    )
    const [row] = rows
    return row ? readRecord(row, Number(row.now), damaged) : null
  }

  find(key: string, id: string): Promise<JournalRecord | null> {
    return this.link.run('find', key, IDEMPOTENT, async (db) => {
      const row = await db
        .selectFrom('journal')
        .selectAll()
        .select(this.link.options.flavor.nowMs.as('now'))
        .where('chat', '=', escapeName(key))
        .where('id', '=', escapeName(id))
        .executeTakeFirst()
      return row ? readRecord(row, Number(row.now), []) : null
    })
  }

  fail(key: string, id: string, fence: number, error: string, retryMs: number | null): Promise<boolean> {
    const { nowMs } = this.link.options.flavor
    return this.link.transact('fail', key, ONCE, async (tx) => {
      const chat = escapeName(key)
      const row = await this.rows.lock(tx, chat)
      if (Number(row.fence) > fence) return false
      await tx
        .updateTable('chats')
        .set({ fence, writes: sql`writes + 1` })
        .where('k', '=', chat)
        .execute()
      const outcome =
        retryMs === null
          ? { status: DEAD, ended_at: nowMs }
          : { due_at: sql<Int>`${nowMs} + ${sql.lit(Math.ceil(retryMs))}` }
      await tx
        .updateTable('journal')
        .set({ ...outcome, attempts: sql`attempts + 1`, last_error: JSON.stringify(error) })
        .where('chat', '=', chat)
        .where('id', '=', escapeName(id))
        .where('status', '=', PENDING)
        .execute()
      return true
    })
  }

  /**
   * Chats by a record or by an appointment. Those named longest ago come first, so that chats somebody works on for
   * long never hide others.
   */
  stranded(idleMs: number, limit: number, keyPrefix = ''): Promise<string[]> {
    if (limit < 1) return Promise.resolve([])
    const { nowMs } = this.link.options.flavor
    const most = Math.floor(limit)
    const prefix = escapeName(keyPrefix)
    const before = sql<Int>`${nowMs} - ${sql.lit(Math.ceil(idleMs))}`
    return this.link.run('stranded', '', IDEMPOTENT, async (db) => {
      const records = await this.strandedRecords(db, before, most, prefix)
      const chats = await db
        .selectFrom('chats')
        .select(['k', 'named_at'])
        .where('wake_at', '<=', before)
        .where('checkpoint', 'is not', null)
        .where((eb) => eb.or([eb('checkpoint_until', 'is', null), eb('checkpoint_until', '>', nowMs)]))
        .where(beginsWith('k', prefix))
        .orderBy('named_at')
        .orderBy('wake_at')
        .limit(sql.lit(most))
        .execute()
      const found = new Map<string, number>()
      for (const { chat, named_at } of records) found.set(chat, Number(named_at))
      for (const { k, named_at } of chats) found.set(k, Math.min(found.get(k) ?? Infinity, Number(named_at)))
      const named = [...found].sort(([, one], [, other]) => one - other).slice(0, most)
      await this.noteNamed(
        db,
        named.map(([chat]) => chat),
      )
      return named.map(([chat]) => unescapeName(chat))
    })
  }

  private strandedRecords(db: Session, before: RawBuilder<Int>, most: number, prefix: string) {
    return db
      .selectFrom('journal as j')
      .select(['j.chat', 'j.named_at'])
      .where('j.status', '=', PENDING)
      .where('j.due_at', '<=', before)
      .where(beginsWith('j.chat', prefix))
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom('journal as older')
              .select('older.seq')
              .whereRef('older.chat', '=', 'j.chat')
              .where('older.status', '=', PENDING)
              .whereRef('older.seq', '<', 'j.seq'),
          ),
        ),
      )
      .orderBy('j.named_at')
      .orderBy('j.seq')
      .limit(sql.lit(most))
      .execute()
  }

  private async noteNamed(db: Session, chats: string[]): Promise<void> {
    if (chats.length === 0) return
    const { nowMs } = this.link.options.flavor
    await db
      .updateTable('journal')
      .set({ named_at: nowMs })
      .where('chat', 'in', chats)
      .where('status', '=', PENDING)
      .execute()
    await db
      .updateTable('chats')
      .set({ named_at: nowMs })
      .where('k', 'in', chats)
      .where('wake_at', 'is not', null)
      .execute()
  }

  deadLetters(limit: number): Promise<DeadLetter[]> {
    if (limit < 1) return Promise.resolve([])
    return this.link.run('deadLetters', '', IDEMPOTENT, async (db) => {
      const rows = await db
        .selectFrom('journal')
        .selectAll()
        .where('status', '=', DEAD)
        .orderBy('ended_at')
        .orderBy('seq')
        .limit(sql.lit(Math.floor(limit)))
        .execute()
      const letters: DeadLetter[] = []
      for (const row of rows) {
        const damaged: Damage[] = []
        const record = readRecord(row, 0, damaged)
        const key = unescapeName(row.chat)
        const at = Number(row.ended_at)
        if (record) {
          letters.push({ key, record, at })
          continue
        }
        const known = { seq: Number(row.seq), attempts: Number(row.attempts) }
        const wrong = damaged[0]?.error ?? 'it cannot be read'
        letters.push(unreadableLetter(key, unescapeName(row.id), at, wrong, known))
      }
      return letters
    })
  }

  retry(key: string, id: string): Promise<boolean> {
    return this.endLetter('retry', key, id, {
      status: PENDING,
      attempts: 0,
      due_at: this.link.options.flavor.nowMs,
    })
  }

  discard(key: string, id: string): Promise<boolean> {
    return this.endLetter('discard', key, id, {
      status: ACKNOWLEDGED,
      ended_at: this.link.options.flavor.nowMs,
    })
  }

  private endLetter(
    operation: string,
    key: string,
    id: string,
    set: UpdateObject<Tables, 'journal'>,
  ): Promise<boolean> {
    return this.link.run(operation, key, ONCE, async (db) => {
      const { numUpdatedRows } = await db
        .updateTable('journal')
        .set(set)
        .where('chat', '=', escapeName(key))
        .where('id', '=', escapeName(id))
        .where('status', '=', DEAD)
        .executeTakeFirst()
      return Number(numUpdatedRows) > 0
    })
  }
}

/** Compared by characters, since `_` and `%` mean something in a pattern. */
function beginsWith(column: string, prefix: string): RawBuilder<boolean> {
  return prefix === ''
    ? sql<boolean>`1 = 1`
    : sql<boolean>`substr(${sql.ref(column)}, 1, ${sql.lit(prefix.length)}) = ${prefix}`
}
