/**
 * `StateStore` and `CheckpointStore` over the tables: the opening read raises the chat's fence in the same statement; a
 * commit is one transaction that compares fence and revision under the row's lock and leaves a receipt (Z4, I5, I9).
 */
import { sql, type Expression, type ExpressionBuilder, type SqlBool, type Transaction } from 'kysely'
import type { Arrival, ChatState, CommitResult, Effects, FlowCheckpoint, ReadOptions } from '@botmesh/core'
import { NO_CHECKPOINT, checkpointColumns, markerColumns, tombstoneOf, type ChatRows } from './chat-rows.js'
import { TOMBSTONE, commitUnit, readUnit, type UnitLimits } from './commit-unit.js'
import { setAside, setEntriesAside } from './damage.js'
import type { SqlFlavor } from './flavor.js'
import { escapeName, unescapeName } from './names.js'
import { boundIds, inboundMark, putMarks, readReceipt, receiptMark, writeReceipt } from './receipts.js'
import type { SqlJournal } from './sql-journal.js'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import type { SqlOutbox } from './sql-outbox.js'
import { slot, type Statements } from './statements.js'
import { alive, readChat, type Damage } from './stored-values.js'
import { ACKNOWLEDGED, PENDING, tableName, type ChatColumns, type Tables } from './tables.js'

const IDEMPOTENT: CallRules = { idempotent: true }
/** How long a receipt answers a resent commit: far more than two leases. */
const RECEIPT_MS = 10 * 60_000
/** Committed ids kept of one chat, whatever their age; looked after now and then, so there may be some more. */
const IDS_PER_CHAT = 500
const IDS_SLACK = 100

type Committed = Extract<CommitResult, { outcome: 'committed' }>
type Chats = ExpressionBuilder<Tables, 'chats'>

interface CommitContext {
  now: number
  receipt: CommitResult | null
  /** Unacknowledged records remain after this commit. */
  more: boolean
}

export class SqlChatState {
  private readonly unitLimits: UnitLimits

  constructor(
    private readonly link: SqlLink,
    private readonly rows: ChatRows,
    private readonly journal: SqlJournal,
    private readonly outbox: SqlOutbox,
    private readonly statements: Statements,
    private readonly limits: { dedupeMs: number },
  ) {
    this.unitLimits = { ...limits, receiptMs: RECEIPT_MS, ids: IDS_PER_CHAT + IDS_SLACK }
  }

  private get flavor(): SqlFlavor {
    return this.link.options.flavor
  }

  async getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    return this.link.run('getCheckpoint', key, IDEMPOTENT, async (db) => {
      const row = await db
        .selectFrom('chats')
        .selectAll()
        .select(this.flavor.nowMs.as('now'))
        .where('k', '=', escapeName(key))
        .executeTakeFirst()
      const damaged: Damage[] = []
      const { checkpoint } = readChat(key, row, Number(row?.now), damaged)
      const unreadable = damaged.find(({ what }) => what === 'checkpoint')
      if (unreadable && (await setAside(db, this.flavor, key, 'checkpoint'))) {
        this.link.options.logger.error({ ...unreadable }, 'a checkpoint cannot be read and was moved aside')
      }
      return checkpoint
    })
  }

  setAside(key: string, what: 'checkpoint' | 'marker'): Promise<string> {
    return this.link.run('setAside', key, IDEMPOTENT, async (db) => {
      const table = tableName(this.link.options.prefix, 'damaged')
      return (await setAside(db, this.flavor, key, what)) ? `table ${table}` : 'nothing: it can be read'
    })
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    const set = checkpointColumns(checkpoint, this.flavor.nowMs)
    await this.link.run('setCheckpoint', key, IDEMPOTENT, (db) =>
      this.rows.updateIf(db, escapeName(key), set, (eb) => eb.lit(true), true),
    )
  }

  async clearCheckpoint(key: string): Promise<void> {
    const set = { ...NO_CHECKPOINT, revision: TOMBSTONE }
    await this.link.run('clearCheckpoint', key, IDEMPOTENT, (db) =>
      this.rows.updateIf(db, escapeName(key), set, (eb) => eb.lit(true), false),
    )
  }

  setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expected: string | null,
    fence: number,
  ): Promise<boolean> {
    const set = { ...checkpointColumns(checkpoint, this.flavor.nowMs), fence }
    // A copy of a write that has landed meets its own revision.
    const repeated = escapeName(checkpoint.revision)
    return this.link.run('setCheckpointIf', key, IDEMPOTENT, (db) =>
      this.rows.updateIf(db, escapeName(key), set, this.allows(expected, fence, repeated), expected === null),
    )
  }

  clearCheckpointIf(key: string, expected: string | null, fence: number): Promise<boolean> {
    const set = { ...NO_CHECKPOINT, revision: TOMBSTONE, fence }
    const repeated = expected === null ? null : `-${escapeName(expected)}`
    return this.link.run('clearCheckpointIf', key, IDEMPOTENT, (db) =>
      this.rows.updateIf(db, escapeName(key), set, this.allows(expected, fence, repeated), expected === null),
    )
  }

  private allows(expected: string | null, fence: number, repeated: string | null) {
    return (chats: Chats): Expression<SqlBool> => {
      const expectation =
        expected === null
          ? chats.or([chats('checkpoint', 'is', null), chats('checkpoint_until', '<=', this.flavor.nowMs)])
          : chats('revision', '=', escapeName(expected))
      const either =
        repeated === null ? expectation : chats.or([expectation, chats('revision', '=', repeated)])
      return chats.and([chats('fence', '<=', fence), either])
    }
  }

  async touch(db: Session, key: string, messageId: string, timestamp: number): Promise<void> {
    const values = { k: escapeName(key), id: escapeName(messageId), at: Math.round(timestamp) }
    await this.statements.run(db, 'touch', values, (on) => {
      const last = { last_id: slot<string>('id'), last_at: slot<number>('at') }
      const insert = on.insertInto('chats').values({ k: slot('k'), ...last })
      return this.flavor.kind === 'mysql'
        ? insert.onDuplicateKeyUpdate(last).compile()
        : insert.onConflict((conflict) => conflict.column('k').doUpdateSet(last)).compile()
    })
  }

  touchChat(key: string, messageId: string, timestamp: number): Promise<void> {
    return this.link.run('touchChat', key, IDEMPOTENT, (db) => this.touch(db, key, messageId, timestamp))
  }

  arrive(key: string, { messageId, timestamp, message }: Arrival): Promise<'recorded' | 'duplicate'> {
    return this.link.run('arrive', key, IDEMPOTENT, async (db) => {
      await this.touch(db, key, messageId, timestamp)
      if (message) return this.journal.insert(db, key, message)
      return (await this.committed(db, key, messageId)) ? 'duplicate' : 'recorded'
    })
  }

  isCommitted(key: string, inboundId: string): Promise<boolean> {
    return this.link.run('isCommitted', key, IDEMPOTENT, (db) => this.committed(db, key, inboundId))
  }

  private async committed(db: Session, key: string, inboundId: string): Promise<boolean> {
    const values = { chat: escapeName(key), name: inboundMark(inboundId) }
    const { rows } = await this.statements.run(db, 'committed', values, (on) =>
      on
        .selectFrom('marks')
        .select('until')
        .where('chat', '=', slot<string>('chat'))
        .where('name', '=', slot<string>('name'))
        .where('until', '>', this.flavor.nowMs)
        .compile(),
    )
    return rows.length > 0
  }

  openState(key: string, fence: number, options: ReadOptions = {}): Promise<ChatState | null> {
    return this.link.run('openState', key, IDEMPOTENT, async (db) => {
      const row = await this.rows.open(db, escapeName(key), fence)
      if (!row) return null
      const damaged: Damage[] = []
      const state = readChat(key, row, Number(row.now), damaged)
      if (options.journal) {
        // Read after the fence was raised: what an older holder had in flight is there or refused.
        const [record, outbox] = await Promise.all([
          this.journal.readOldest(db, key, damaged),
          this.outbox.read(db, key, damaged),
        ])
        state.record = record
        state.outbox = outbox
      }
      if (damaged.length === 0) return state
      await setEntriesAside(db, this.flavor, key, damaged)
      return { ...state, damaged }
    })
  }

  async commitState(key: string, fence: number, commitId: string, effects: Effects): Promise<CommitResult> {
    const chat = escapeName(key)
    const unit = commitUnit(this.flavor, { chat, fence, commitId, effects }, this.unitLimits)
    const row =
      unit &&
      (await this.link.run('commitState', key, IDEMPOTENT, (db) =>
        this.link.unit(db, this.statements.bind(db, unit.form, unit.values, unit.build)),
      ))
    if (row) return readUnit(row)
    // Nothing was written: a receipt says that it was before, or a rule stands against it, or the row is not there.
    return this.commitInSteps(key, fence, commitId, effects)
  }

  private commitInSteps(
    key: string,
    fence: number,
    commitId: string,
    effects: Effects,
  ): Promise<CommitResult> {
    const chat = escapeName(key)
    return this.link.transact('commitState', key, IDEMPOTENT, async (tx) => {
      const { row, context } = await this.lockAndRead(tx, chat, commitId, effects)
      if (context.receipt) return context.receipt
      if (Number(row.fence) > fence || !matches(row, effects, context.now)) {
        return { outcome: 'refused', why: 'superseded' }
      }
      const result = resultOf(row, effects, context)
      // Without waiting in between: a connection that pipelines sends them in one trip.
      await Promise.all(this.writes(tx, chat, fence, commitId, { effects, row, now: context.now, result }))
      return result
    })
  }

  /**
   * Locks the row, then, in a statement of its own, reads the rest: that one sees what the former holder of the lock
   * wrote, and what time it is by then. Both are sent at once, in this order, where the connection pipelines.
   */
  private async lockAndRead(
    tx: Transaction<Tables>,
    chat: string,
    commitId: string,
    effects: Effects,
  ): Promise<{ row: ChatColumns; context: CommitContext }> {
    const [known, first] = await Promise.all([
      this.rows.lockKnown(tx, chat),
      this.context(tx, chat, commitId, effects),
    ])
    if (known) return { row: known, context: first }
    const row = await this.rows.lock(tx, chat)
    return { row, context: await this.context(tx, chat, commitId, effects) }
  }

  private async context(
    tx: Transaction<Tables>,
    chat: string,
    commitId: string,
    { ack = [] }: Effects,
  ): Promise<CommitContext> {
    const remaining = tx
      .selectFrom('journal')
      .select('seq')
      .where('chat', '=', chat)
      .where('status', '=', PENDING)
      .$if(ack.length > 0, (query) => query.where('id', 'not in', ack.map(escapeName)))
      .orderBy('seq')
      .limit(sql.lit(1))
    const receipt = tx
      .selectFrom('marks')
      .select('value')
      .where('chat', '=', chat)
      .where('name', '=', receiptMark(commitId))
    const found = await tx
      .selectNoFrom([this.flavor.nowMs.as('now'), receipt.as('receipt'), remaining.as('remaining')])
      .executeTakeFirstOrThrow()
    return {
      now: Number(found.now),
      receipt: found.receipt === null ? null : readReceipt(found.receipt),
      more: found.remaining !== null,
    }
  }

  private *writes(
    tx: Transaction<Tables>,
    chat: string,
    fence: number,
    commitId: string,
    what: { effects: Effects; row: ChatColumns; now: number; result: Committed },
  ): Generator<Promise<unknown>> {
    const { effects, row, now, result } = what
    const { checkpoint, wakeInMs, marker, inboundId, ack = [], outbox = [], forget = [] } = effects
    yield tx
      .updateTable('chats')
      .set({ fence, writes: sql`writes + 1` })
      .$if(checkpoint !== undefined, (update) =>
        update.set(
          checkpoint
            ? checkpointColumns(checkpoint, now, wakeInMs)
            : { ...NO_CHECKPOINT, revision: tombstoneOf(row.revision) },
        ),
      )
      .$if(checkpoint === undefined && wakeInMs === null, (update) => update.set({ wake_at: null }))
      .$if(marker !== undefined, (update) => update.set(markerColumns(marker ?? null, now)))
      .$if(inboundId !== undefined, (update) => update.set({ committed: sql`committed + 1` }))
      .where('k', '=', chat)
      .execute()
    const marks = [
      { chat, name: receiptMark(commitId), value: writeReceipt(result), until: now + RECEIPT_MS },
    ]
    if (inboundId !== undefined) {
      const until = now + this.limits.dedupeMs
      marks.push({ chat, name: inboundMark(inboundId), value: '', until })
    }
    yield putMarks(tx, this.flavor, marks)
    if (ack.length > 0) {
      yield tx
        .updateTable('journal')
        .set({ status: ACKNOWLEDGED, ended_at: now })
        .where('chat', '=', chat)
        .where('id', 'in', ack.map(escapeName))
        .where('status', '=', PENDING)
        .execute()
    }
    if (outbox.length > 0) yield this.outbox.write(tx, chat, outbox)
    if (forget.length > 0) yield this.outbox.forget(tx, chat, forget)
    if (inboundId !== undefined && Number(row.committed) >= IDS_PER_CHAT + IDS_SLACK)
      yield boundIds(tx, chat, IDS_PER_CHAT)
  }
}

function matches(row: ChatColumns, { checkpoint, expectedRevision = null }: Effects, now: number): boolean {
  if (checkpoint === undefined) return true
  if (expectedRevision === null) return row.checkpoint === null || !alive(row.checkpoint_until, now)
  return row.revision === escapeName(expectedRevision)
}

function resultOf(row: ChatColumns, { checkpoint }: Effects, { now, more }: CommitContext): Committed {
  if (checkpoint) return { outcome: 'committed', revision: checkpoint.revision, more }
  const expired = row.checkpoint !== null && !alive(row.checkpoint_until, now)
  const kept = checkpoint === null ? tombstoneOf(row.revision) : expired ? null : row.revision
  return { outcome: 'committed', revision: kept === null ? null : unescapeName(kept), more }
}
