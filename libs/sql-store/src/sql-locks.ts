/** Fenced locks (S2): a row a name, which stays for a while after its end, so that its fence goes on from there. */
import { sql } from 'kysely'
import {
  CheckedLocks,
  StoreError,
  type CheckedLocksOptions,
  type FencedLock,
  type LockStore,
} from '@botmesh/core'
import type { ChatRows } from './chat-rows.js'
import { escapeName } from './names.js'
import type { CallRules, Session, SqlLink } from './sql-link.js'
import type { Int } from './tables.js'

/** A lease backend for the scheduler: fenced leases by name, apart from the application's locks. */
export type SqlLeases = Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>

const ONCE: CallRules = { idempotent: false }
const IDEMPOTENT: CallRules = { idempotent: true }

export class SqlLocks extends CheckedLocks {
  constructor(
    private readonly link: SqlLink,
    private readonly rows: ChatRows,
    options: CheckedLocksOptions,
  ) {
    super(options)
  }

  protected async take(key: string, token: string, ttlMs: number): Promise<FencedLock | null> {
    const until = this.untilOf(ttlMs)
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

  protected async prolong(key: string, token: string, ttlMs: number): Promise<boolean> {
    const until = this.untilOf(ttlMs)
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

  protected async free(key: string, token: string): Promise<boolean> {
    return this.link.run('releaseLock', key, ONCE, async (db) => {
      const { numUpdatedRows } = await db
        .updateTable('locks')
        .set({ until: 0 })
        .where('name', '=', this.nameOf(key))
        .where('token', '=', token)
        .where('until', '>', this.link.options.flavor.nowMs)
        .executeTakeFirst()
      return Number(numUpdatedRows) > 0
    })
  }

  private nameOf(key: string): string {
    return escapeName(`${this.kind}:${key}`)
  }

  private untilOf(ttlMs: number) {
    return sql<Int>`${this.link.options.flavor.nowMs} + ${sql.lit(Math.ceil(ttlMs))}`
  }
}
