/**
 * Removes what has had its time: receipts and committed ids, acknowledged records, ends of locks, expired channels.
 * Nothing runs while the store is idle: a write now and then starts it, in the background and in small portions.
 */
import { sql } from 'kysely'
import { BackgroundSweep } from '@botmesh/core'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import { ACKNOWLEDGED } from './tables.js'

const PORTION = 2000
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

  /** Public for tests. */
  async sweep(): Promise<void> {
    const { flavor } = this.link.options
    await this.link.run('sweep', '', IDEMPOTENT, async (db) => {
      const { now } = await db.selectNoFrom(flavor.nowMs.as('now')).executeTakeFirstOrThrow()
      await sweepMarks(db, Number(now))
      await sweepJournal(db, Number(now) - this.limits.dedupeMs)
      await db
        .deleteFrom('locks')
        .where('until', '>', 0)
        .where('until', '<=', Number(now) - LOCK_MS)
        .execute()
      await sweepLog(db, Number(now))
    })
  }
}

async function sweepMarks(db: Session, now: number): Promise<void> {
  for (;;) {
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
    if (!last) return
  }
}

/** But for those that a kept answer points to (H7). */
async function sweepJournal(db: Session, before: number): Promise<void> {
  for (;;) {
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
    if (old.length === 0) return
    const seqs = old.map(({ seq }) => seq)
    await db.deleteFrom('journal').where('seq', 'in', seqs).where('status', '=', ACKNOWLEDGED).execute()
  }
}

/** Channels keep their row, and so their numbers, for as long again. */
async function sweepLog(db: Session, now: number): Promise<void> {
  const expired = await db
    .selectFrom('channels')
    .select('name')
    .where('until', '<=', now)
    .limit(sql.lit(PORTION))
    .execute()
  if (expired.length === 0) return
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
}
