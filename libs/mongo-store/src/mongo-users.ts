/** `ctx.user`: a document a user, written by compare-and-set in one statement. */
import { readStoredUser, type Damage, type Random, type UserRecord } from '@botmesh/core'
import { keep } from './damage.js'
import { IDEMPOTENT, ONCE, type MongoLink } from './mongo-link.js'
import { escapeName } from './names.js'
import { isDuplicateKey } from './verdict.js'

export class MongoUsers {
  constructor(
    private readonly link: MongoLink,
    private readonly random: Random,
  ) {}

  get(userId: string): Promise<UserRecord | null> {
    return this.link.run('getUser', userId, IDEMPOTENT, async (collections) => {
      const _id = escapeName(userId)
      const document = await collections.users.findOne({ _id })
      if (!document) return null
      const { data: json, revision } = document
      const damaged: Damage[] = []
      const data = readStoredUser(userId, json, damaged)
      if (data) return { data, revision }
      for (const one of damaged) {
        this.link.options.logger.error({ ...one }, 'a stored value could not be read and was moved aside')
        await keep(collections, one, json)
      }
      await collections.users.deleteOne({ _id, revision })
      return null
    })
  }

  setIf(userId: string, data: UserRecord['data'], expected: string | null): Promise<string | null> {
    const revision = this.random.uuid()
    const _id = escapeName(userId)
    const set = { data: JSON.stringify(data), revision }
    return this.link.run('setUserIf', userId, ONCE, async ({ users }) => {
      if (expected !== null) {
        const { matchedCount } = await users.updateOne({ _id, revision: expected }, { $set: set })
        return matchedCount > 0 ? revision : null
      }
      try {
        await users.insertOne({ _id, ...set })
        return revision
      } catch (error) {
        if (isDuplicateKey(error)) return null
        throw error
      }
    })
  }
}
