/**
 * The row of a chat: checkpoint, marker, fence (I5, I11). Conditional writes are one statement each, which compares and
 * writes; a transaction that does more first locks the row, and only then asks for the time and reads the rest.
 */
import {
  sql,
  type CompiledQuery,
  type Expression,
  type ExpressionBuilder,
  type InsertObject,
  type RawBuilder,
  type SqlBool,
  type Transaction,
  type UpdateObject,
} from 'kysely'
import { ConfigError, keptRecordOf, type ConversationMarker, type FlowCheckpoint } from '@botmesh/core'
import type { SqlFlavor } from './flavor.js'
import { escapeName } from './names.js'
import type { Session } from './sql-link.js'
import { slot, type Statements } from './statements.js'
import type { ChatColumns, Int, Tables } from './tables.js'

type Value<T> = T | RawBuilder<T>

/** Columns of the checkpoint. @throws ConfigError if it is marked ephemeral without saying for how long. */
export function checkpointColumns(checkpoint: FlowCheckpoint, nowMs: Value<Int>, wakeInMs?: number | null) {
  const record = keptRecordOf(checkpoint)
  return {
    checkpoint: JSON.stringify(checkpoint),
    revision: escapeName(checkpoint.revision),
    checkpoint_until: after(nowMs, ttlOf(checkpoint)),
    record_id: record === null ? null : escapeName(record),
    // An appointment belongs to the checkpoint as written: whatever writes it ends the one before.
    wake_at: after(nowMs, wakeInMs ?? undefined),
    named_at: 0,
  }
}

export const NO_CHECKPOINT = {
  checkpoint: null,
  checkpoint_until: null,
  record_id: null,
  wake_at: null,
} as const

export function markerColumns(marker: ConversationMarker | null, nowMs: Value<Int>) {
  if (!marker) return { marker: null, marker_until: null }
  return { marker: JSON.stringify(marker), marker_until: after(nowMs, marker.ttlMs) }
}

function after(nowMs: Value<Int>, ttlMs: number | undefined): Value<Int> | null {
  if (ttlMs === undefined) return null
  const ttl = Math.ceil(ttlMs)
  return typeof nowMs === 'number' ? nowMs + ttl : sql<Int>`${nowMs} + ${sql.lit(ttl)}`
}

export function ttlOf(checkpoint: FlowCheckpoint): number | undefined {
  if (!checkpoint.ephemeral) return undefined
  if (checkpoint.ttlMs !== undefined && checkpoint.ttlMs > 0) return checkpoint.ttlMs
  throw new ConfigError('An ephemeral checkpoint needs a positive ttlMs.', {
    option: 'ttlMs',
    value: checkpoint.ttlMs,
  })
}

/** The tombstone's revision: new, so that no write in flight that knew the old one gets through (I11). */
export function tombstoneOf(revision: string | null): string | null {
  return revision === null || revision.startsWith('-') ? revision : `-${revision}`
}

export class ChatRows {
  constructor(
    private readonly flavor: SqlFlavor,
    private readonly statements: Statements,
  ) {}

  /** Inserts unless a row with this key is there. @returns whether it did. */
  async insertNew<T extends keyof Tables>(
    db: Session,
    table: T,
    values: InsertObject<Tables, T>,
  ): Promise<boolean> {
    const insert = db.insertInto(table).values(values)
    // IGNORE would also cut what is too long: names are checked before, and texts have no limit.
    const quiet =
      this.flavor.kind === 'mysql' ? insert.ignore() : insert.onConflict((conflict) => conflict.doNothing())
    const { numInsertedOrUpdatedRows } = await quiet.executeTakeFirst()
    return Number(numInsertedOrUpdatedRows ?? 0) > 0
  }

  /** Locks the chat until the transaction ends; makes its row if there is none. `key` escaped. */
  async lock(tx: Transaction<Tables>, key: string): Promise<ChatColumns> {
    for (;;) {
      const row = await this.lockKnown(tx, key)
      if (row) return row
      await this.insertNew(tx, 'chats', { k: key })
    }
  }

  /** The same for a chat that has a row. */
  lockKnown(tx: Transaction<Tables>, key: string): Promise<ChatColumns | undefined> {
    const query = tx.selectFrom('chats').selectAll().where('k', '=', key)
    return (this.flavor.rowLocks ? query.forUpdate() : query).executeTakeFirst()
  }

  /**
   * Writes `set` into the row if `condition` holds, in one statement; `mayCreate`: a chat without a row meets it.
   * @returns whether it was written.
   */
  async updateIf(
    db: Session,
    key: string,
    set: ChatWrite,
    condition: (chats: ExpressionBuilder<Tables, 'chats'>) => Expression<SqlBool>,
    mayCreate: boolean,
  ): Promise<boolean> {
    const update = async (): Promise<boolean> => {
      const { numUpdatedRows } = await db
        .updateTable('chats')
        .set({ ...set, writes: sql`writes + 1` })
        .where('k', '=', key)
        .where(condition)
        .executeTakeFirst()
      return Number(numUpdatedRows) > 0
    }
    if (await update()) return true
    // Empty rows change nothing for anybody; the write itself compares again.
    return mayCreate && (await this.insertNew(db, 'chats', { k: key })) ? update() : false
  }

  /** Raises the chat's fence and reads the row in the same statement. @returns undefined if a higher one is known. */
  async open(db: Session, key: string, fence: number): Promise<OpenedRow | undefined> {
    const { upserts, unit } = this.flavor
    const values = { key, fence }
    if (upserts) return (await this.statements.run(db, 'open', values, (on) => this.openAtOnce(on))).rows[0]
    // From the first statement on lower fences are refused, so that nothing older slips in before the second.
    const both = this.statements.bind(db, 'open', values, (on) => this.openInTwo(on))
    let row: OpenedRow | undefined
    if (unit === 'packet') {
      const { rows } = await db.executeQuery(both[2] as CompiledQuery<OpenedRow[]>)
      row = rows[1]?.[0]
    } else {
      await db.executeQuery(both[0] as CompiledQuery)
      row = (await db.executeQuery(both[1] as CompiledQuery<OpenedRow>)).rows[0]
    }
    return row && Number(row.fence) <= fence ? row : undefined
  }

  private openAtOnce(db: Session): CompiledQuery<OpenedRow> {
    const fence = slot<number>('fence')
    return db
      .insertInto('chats')
      .values({ k: slot('key'), fence })
      .onConflict((conflict) =>
        conflict
          .column('k')
          .doUpdateSet({ fence, writes: sql`${sql.ref('chats.writes')} + 1` })
          .where(sql.ref('chats.fence'), '<=', fence),
      )
      .returning([...OPENED])
      .returning(this.flavor.nowMs.as('now'))
      .compile()
  }

  /** The two statements, and both as one text. */
  private openInTwo(db: Session): CompiledQuery[] {
    const raise = db
      .insertInto('chats')
      .values({ k: slot('key'), fence: slot('fence') })
      .onDuplicateKeyUpdate({ fence: sql`greatest(fence, values(fence))`, writes: sql`writes + 1` })
    const read = db
      .selectFrom('chats')
      .select([...OPENED])
      .select(this.flavor.nowMs.as('now'))
      .where('k', '=', slot<string>('key'))
    return [raise.compile(), read.compile(), sql`${raise}; ${read}`.compile(db)]
  }
}

const OPENED = [
  'fence',
  'revision',
  'checkpoint',
  'checkpoint_until',
  'wake_at',
  'marker',
  'marker_until',
] as const
export type OpenedRow = Pick<ChatColumns, (typeof OPENED)[number]> & { now: Int }

/** What a conditional write may set. */
export type ChatWrite = Omit<UpdateObject<Tables, 'chats'>, 'k' | 'writes'>
