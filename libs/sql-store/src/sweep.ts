/**
 * Removes what has had its time: receipts and committed ids, acknowledged records, ends of locks, expired channels.
 * Nothing runs while the store is idle: a write now and then starts it, in the background and in small portions.
 */
import { sql } from 'kysely'
import { BackgroundSweep } from '@botmesh/core'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import { ACKNOWLEDGED } from './tables.js'

const PORTION = 2000
/** A portion of logs: each has up to as many entries as it keeps. */
const CHANNELS = 200
/** A lock's row outlives its end, so that its fence grows also where the clock steps back. */
const LOCK_MS = 7 * 86_400_000
const IDEMPOTENT: CallRules = { idempotent: true }

export class Sweep extends BackgroundSweep {
  constructor(
    private readonly link: SqlLink,
    private readonly limits: { dedupeMs: number },
  ) {
    super(link.options, 'old rows')
  }

  protected async sweep(): Promise<void> {
    const { nowMs } = this.link.options.flavor
    const { now } = await this.call((db) => db.selectNoFrom(nowMs.as('now')).executeTakeFirstOrThrow())
    const until = Number(now)
    const parts: ((db: Session) => Promise<boolean>)[] = [
      (db) => sweepMarks(db, until),
      (db) => sweepJournal(db, until - this.limits.dedupeMs),
      (db) => sweepLocks(db, until - LOCK_MS),
      (db) => sweepLog(db, until),
    ]
    for (const part of parts) await this.portions(() => this.call(part))
  }

  private call<T>(work: (db: Session) => Promise<T>): Promise<T> {
    return this.link.run('sweep', '', IDEMPOTENT, work)
  }
}

async function sweepMarks(db: Session, now: number): Promise<boolean> {
  const last = await db
    .selectFrom('marks')
    .select('until')
    .where('until', '<=', now)
    .orderBy('until')
    .limit(sql.lit(1))
    .offset(sql.lit(PORTION))
    .executeTakeFirst()
  await db
    .deleteFrom('marks')
    .where('until', '<=', last ? last.until : now)
    .execute()
  return last !== undefined
}

async function sweepLocks(db: Session, before: number): Promise<boolean> {
  await db.deleteFrom('locks').where('until', '>', 0).where('until', '<=', before).execute()
  return false
}

/** But for those that a kept answer points to (H7). */
async function sweepJournal(db: Session, before: number): Promise<boolean> {
  const old = await db
    .selectFrom('journal')
    .select('seq')
    .where('status', '=', ACKNOWLEDGED)
    .where('ended_at', '<=', before)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('chats')
            .select('chats.k')
            .whereRef('chats.k', '=', 'journal.chat')
            .whereRef('chats.record_id', '=', 'journal.id'),
        ),
      ),
    )
    .limit(sql.lit(PORTION))
    .execute()
  if (old.length === 0) return false
  const seqs = old.map(({ seq }) => seq)
  await db.deleteFrom('journal').where('seq', 'in', seqs).where('status', '=', ACKNOWLEDGED).execute()
  return true
}

/** Channels keep their row, and so their numbers; those without entries are known by `until`. */
async function sweepLog(db: Session, now: number): Promise<boolean> {
  const expired = await db
    .selectFrom('channels')
    .select('name')
    .where('until', '>', 0)
    .where('until', '<=', now)
    .limit(sql.lit(CHANNELS))
    .execute()
  if (expired.length === 0) return false
  const names = expired.map(({ name }) => name)
  // An append in between has prolonged its channel: then its entries stay.
  await db
    .deleteFrom('log')
    .where('channel', 'in', names)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('channels')
          .select('channels.name')
          .whereRef('channels.name', '=', 'log.channel')
          .where('channels.until', '<=', now),
      ),
    )
    .execute()
  await db
    .updateTable('channels')
    .set({ until: 0 })
    .where('name', 'in', names)
    .where('until', '<=', now)
    .execute()
  return expired.length === CHANNELS
}
