/** `ctx.user`: a row a user, written by compare-and-set in one statement. */
import type { Random, UserRecord } from '@botmesh/core'
import type { ChatRows } from './chat-rows.js'
import { keep } from './damage.js'
import { escapeName } from './names.js'
import type { CallRules, SqlLink } from './sql-link.js'
import { readUser, type Damage } from './stored-values.js'

const ONCE: CallRules = { idempotent: false }
const IDEMPOTENT: CallRules = { idempotent: true }

export class SqlUsers {
  constructor(
    private readonly link: SqlLink,
    private readonly rows: ChatRows,
    private readonly random: Random,
  ) {}

  get(userId: string): Promise<UserRecord | null> {
    return this.link.run('getUser', userId, IDEMPOTENT, async (db) => {
      const id = escapeName(userId)
      const row = await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()
      if (!row) return null
      const damaged: Damage[] = []
      const data = readUser(userId, row.data, damaged)
      if (data) return { data, revision: row.revision }
      const { flavor, logger } = this.link.options
      for (const one of damaged) {
        logger.error({ ...one }, 'a stored value could not be read and was moved aside')
        await keep(db, flavor, one, row.data)
      }
      await db.deleteFrom('users').where('id', '=', id).where('revision', '=', row.revision).execute()
      return null
    })
  }

  setIf(userId: string, data: UserRecord['data'], expected: string | null): Promise<string | null> {
    const revision = this.random.uuid()
    const row = { id: escapeName(userId), data: JSON.stringify(data), revision }
    return this.link.run('setUserIf', userId, ONCE, async (db) => {
      if (expected === null) return (await this.rows.insertNew(db, 'users', row)) ? revision : null
      const { numUpdatedRows } = await db
        .updateTable('users')
        .set({ data: row.data, revision })
        .where('id', '=', row.id)
        .where('revision', '=', expected)
        .executeTakeFirst()
      return Number(numUpdatedRows) > 0 ? revision : null
    })
  }
}
