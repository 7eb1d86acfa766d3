/** Fenced locks (S2): a row a name, which stays for a while after its end, so that its fence goes on from there. */
import { sql } from 'kysely'
import {
  LOCK_WAS_LOST,
  StoreError,
  newLockToken,
  requireLockToken,
  requireLockTtl,
  type FencedLock,
  type LockStore,
  type Random,
} from '@botmesh/core'
import type { ChatRows } from './chat-rows.js'
import { escapeName } from './names.js'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import type { Int } from './tables.js'

/** A lease backend for the scheduler: fenced leases by name, apart from the application's locks. */
export type SqlLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

const ONCE: CallRules = { idempotent: false }
const IDEMPOTENT: CallRules = { idempotent: true }

export class SqlLocks implements SqlLeases {
  constructor(
    private readonly link: SqlLink,
    private readonly rows: ChatRows,
    private readonly random: Random,
    /** Keeps locks of different purposes apart. */
    private readonly kind: 'lock' | 'lease',
  ) {}

  async acquireLockFenced(key: string, ttlMs: number): Promise<FencedLock | null> {
    const until = this.untilOf(ttlMs)
    const token = newLockToken(key, this.random)
    const name = this.nameOf(key)
    // Its own token tells a copy of the call that the first one has landed.
    return this.link.run('acquireLockFenced', key, IDEMPOTENT, async (db) => {
      const { flavor } = this.link.options
      const { nowMs, nowMicros } = flavor
      const { numUpdatedRows } = await db
        .updateTable('locks')
        .set({ token, until, fence: flavor.greatest(sql`fence + 1`, nowMicros) })
        .where('name', '=', name)
        .where('until', '<=', nowMs)
        .executeTakeFirst()
      if (Number(numUpdatedRows) === 0) {
        await this.rows.insertNew(db, 'locks', { name, token, until, fence: nowMicros })
      }
      return this.held(db, name, token)
    })
  }

  private async held(db: Session, name: string, token: string): Promise<FencedLock | null> {
    const row = await db
      .selectFrom('locks')
      .select('fence')
      .where('name', '=', name)
      .where('token', '=', token)
      .executeTakeFirst()
    if (!row) return null
    const fence = Number(row.fence)
    if (Number.isSafeInteger(fence)) return { token, fence }
    throw new StoreError(`The fence of lock "${name}" is no safe integer: is the database's clock right?`, {
      store: this.link.options.flavor.kind,
      operation: 'acquireLockFenced',
    })
  }

  async renewLock(key: string, token: string, ttlMs: number): Promise<boolean> {
    const until = this.untilOf(ttlMs)
    requireLockToken(key, token)
    return this.link.run('renewLock', key, IDEMPOTENT, async (db) => {
      const { numUpdatedRows } = await db
        .updateTable('locks')
        .set({ until })
        .where('name', '=', this.nameOf(key))
        .where('token', '=', token)
        .where('until', '>', this.link.options.flavor.nowMs)
        .executeTakeFirst()
      return Number(numUpdatedRows) > 0
    })
  }

  async releaseLock(key: string, token: string): Promise<boolean> {
    requireLockToken(key, token)
    const freed = await this.link.run('releaseLock', key, ONCE, async (db) => {
      const { numUpdatedRows } = await db
        .updateTable('locks')
        .set({ until: 0 })
        .where('name', '=', this.nameOf(key))
        .where('token', '=', token)
        .where('until', '>', this.link.options.flavor.nowMs)
        .executeTakeFirst()
      return Number(numUpdatedRows) > 0
    })
    if (!freed && this.kind === 'lock') this.link.options.logger.warn({ lock: key }, LOCK_WAS_LOST)
    return freed
  }

  private nameOf(key: string): string {
    return escapeName(`${this.kind}:${key}`)
  }

  private untilOf(ttlMs: number) {
    requireLockTtl(ttlMs)
    return sql<Int>`${this.link.options.flavor.nowMs} + ${sql.lit(Math.ceil(ttlMs))}`
  }
}
