/**
 * The versioned schema: what must be there besides documents (indexes), made once, whatever the number of replicas that
 * start together: each step may be repeated, and at the same time. Where the version is right nothing is written.
 *
 * To add a step: append it to STEPS and never change those before it.
 */
import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import { ConfigError } from '@botmesh/core'
import type { Collections, Documents } from './documents.js'
import { isDuplicateKey } from './verdict.js'

interface Index {
  on: keyof Documents
  keys: IndexSpecification
  options?: CreateIndexesOptions
}

const positive = (field: string) => ({ partialFilterExpression: { [field]: { $gt: 0 } } })

const FIRST: Index[] = [
  { on: 'chats', keys: { dueAt: 1 }, options: positive('dueAt') },
  { on: 'chats', keys: { wakeAt: 1 }, options: positive('wakeAt') },
  { on: 'chats', keys: { deadAt: 1 }, options: positive('deadAt') },
  { on: 'bodies', keys: { at: 1 } },
  { on: 'locks', keys: { expireAt: 1 }, options: { expireAfterSeconds: 0 } },
  { on: 'channels', keys: { expireAt: 1 }, options: { expireAfterSeconds: 0 } },
]

const STEPS: readonly Index[][] = [FIRST]

/** The schema that this release reads and writes. */
export const SCHEMA_VERSION = STEPS.length

/** @param place for messages. @throws ConfigError if the schema is of a newer release. */
export async function prepare(collections: Collections, prefix: string, place: string): Promise<void> {
  const known = await collections.schema.findOne({ _id: 'schema' })
  const version = known?.version ?? 0
  if (version > SCHEMA_VERSION) {
    throw new ConfigError(
      `The collections "${prefix}_*" in MongoDB (${place}) are of schema version ${version}; this release of Botmesh knows versions up to ${SCHEMA_VERSION}. Update it on this replica, or use another "prefix".`,
      { option: 'prefix', value: prefix, accepted: `collections of a version up to ${SCHEMA_VERSION}` },
    )
  }
  if (version === SCHEMA_VERSION) return
  for (const step of STEPS.slice(version)) {
    for (const { on, keys, options = {} } of step) await collections[on].createIndex(keys, options)
  }
  // Never back: a replica of a newer release may have come meanwhile.
  const raise = { $max: { version: SCHEMA_VERSION } }
  try {
    await collections.schema.updateOne({ _id: 'schema' }, raise, { upsert: true })
  } catch (error) {
    if (!isDuplicateKey(error)) throw error
    await collections.schema.updateOne({ _id: 'schema' }, raise)
  }
}
