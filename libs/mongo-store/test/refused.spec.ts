/** What is refused at construction and at start, and that no error carries a secret. On doubles that ask for a password. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { MongoClient } from 'mongodb'
import { ConfigError, StoreError, type Logger } from '@botmesh/core'
import { testCheckpoint, testMessage } from '@botmesh/core/testing'
import { MongoDouble } from '../../../test/doubles/mongo/index.js'
import { freePort } from '../../../test/support/index.js'
import { MongoStore, type MongoStoreOptions } from '../src/index.js'
import { freshPrefix } from './bed.js'

const SECRET = 'p:w/s @ñ%'
const login = (user: string, password: string): string => `${user}:${encodeURIComponent(password)}@`

const double = new MongoDouble({
  users: {
    bot: { password: SECRET, rights: 'readWrite' },
    reader: { password: SECRET, rights: 'read' },
  },
})
beforeAll(() => double.start())
afterAll(() => double.stop())

function refused(options: object): ConfigError {
  try {
    void new MongoStore(options)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error(`Nothing was refused in ${JSON.stringify(options)}.`)
}

async function refusal(options: MongoStoreOptions): Promise<Error> {
  const store = new MongoStore(options)
  const error: unknown = await store.open().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  await store.close()
  if (error instanceof Error) return error
  throw new Error('Nothing was refused.')
}

/** Everything that a log would show of an error. */
function shown(error: unknown): string {
  const { message, stack, cause, details } = error as Error & { details?: object }
  return JSON.stringify([message, stack, details]) + (cause === undefined ? '' : shown(cause))
}

describe('S1, bad input: what is refused at construction', () => {
  it('options that are unknown, missing or impossible, without the URL in the message', () => {
    expect(refused({ ulr: 'x' }).message).toMatch(/no option "ulr"; did you mean "url"/)
    expect(refused({ url: undefined }).message).toMatch(/"url" of MongoStore is undefined/)
    expect(refused({ url: '' }).message).toMatch(/is empty/)
    expect(refused({ url: 7 }).message).toMatch(/is a number/)
    expect(refused({ url: 'postgres://h/d' }).message).toMatch(/begins with "postgres:\/\/"/)
    expect(refused({ url: 'mongodb://h/d?retryWrite=false' }).message).toMatch(/retrywrite/i)
    const url = 'mongodb://h/d'
    expect(refused({ url, client: {} }).details.option).toBe('client')
    expect(refused({ client: {} }).message).toMatch(/is not a client of mongodb/)
    expect(refused({ url, connections: 0 }).details.option).toBe('connections')
    expect(refused({ url, prefix: 'a b' }).details.option).toBe('prefix')
    expect(refused({ url, database: 'a b' }).details.option).toBe('database')
    expect(refused({ url, callTimeoutMs: 1 }).details.option).toBe('callTimeoutMs')
  })

  it('whatever is wrong with a URL, no error shows the password in it', () => {
    const wrong = [
      `no url ${SECRET}`,
      `mongodb//u:${SECRET}@h/d`,
      `mysql://u:${SECRET}@h/d`,
      `mongodb://u:${SECRET}@h/d`,
      `mongodb://u:${encodeURIComponent(SECRET)}@h:port/d`,
      `mongodb+srv://u:${encodeURIComponent(SECRET)}@h:1/d`,
    ]
    for (const url of wrong) {
      const text = shown(refused({ url }))
      expect(text).not.toContain(SECRET)
      expect(text).not.toContain('p:w')
      expect(text).not.toContain(encodeURIComponent(SECRET))
    }
  })
})

describe('S1, bad input: what is refused at start', () => {
  it('the right password of a user who may read and write is accepted', async () => {
    const store = new MongoStore({ url: double.url(login('bot', SECRET)), prefix: freshPrefix() })
    await store.setCheckpoint('k', testCheckpoint('1:1'))
    expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
    await store.close()
  })

  it('a wrong password, an unknown user or none, at once, naming no secret', async () => {
    const began = performance.now()
    for (const who of [login('bot', 'geheim'), login('nobody', 'geheim')]) {
      const error = await refusal({ url: double.url(who) })
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(/127\.0\.0\.1:\d+\/botmesh: the user or its password is not accepted/)
      expect(shown(error)).not.toContain('geheim')
    }
    const error = await refusal({ url: double.url() })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/lacks a right/)
    expect(performance.now() - began).toBeLessThan(5000)
  })

  it('missing rights: the error names the role; reading where everything is there needs no more', async () => {
    const prefix = freshPrefix()
    const url = double.url(login('reader', SECRET))
    const error = await refusal({ url, prefix })
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/lacks a right.*readWrite/)
    const owner = new MongoStore({ url: double.url(login('bot', SECRET)), prefix })
    await owner.setCheckpoint('k', testCheckpoint('1:1'))
    const reader = new MongoStore({ url, prefix })
    expect((await reader.getCheckpoint('k'))?.revision).toBe('1:1')
    const late: unknown = await reader.openState('k', 1).catch((reason: unknown) => reason)
    expect(late).toBeInstanceOf(ConfigError)
    await Promise.all([owner.close(), reader.close()])
  })

  it('a server that cannot be reached: tried until startTimeoutMs, then a retryable error', async () => {
    const lines: string[] = []
    const note = (_: object, text: string) => void lines.push(text)
    const logger: Logger = { debug: note, info: note, warn: note, error: note }
    const url = `mongodb://u:${encodeURIComponent(SECRET)}@127.0.0.1:${await freePort()}/d`
    const error = await refusal({ url, startTimeoutMs: 700, callTimeoutMs: 300, logger })
    expect(error).toBeInstanceOf(StoreError)
    expect(error).toMatchObject({ retryable: true, details: { store: 'mongo', operation: 'open' } })
    expect(shown(error)).not.toContain(encodeURIComponent(SECRET))
    expect(lines).toEqual(['MongoDB cannot be reached yet'])
  })

  it('a server that comes up meanwhile is found', async () => {
    const late = new MongoDouble()
    await late.start()
    const url = late.url()
    await late.stop()
    const store = new MongoStore({ url, callTimeoutMs: 500 })
    const opened = store.open()
    await late.start()
    await opened
    expect(await store.getCheckpoint('k')).toBeNull()
    await store.close()
    await late.stop()
  })
})

describe('a client that is given', () => {
  it('is used with guarantees of the store’s own, and is not closed', async () => {
    // Settings that would change what the store reads and what its answers promise.
    const client = new MongoClient(double.url(login('bot', SECRET)), {
      ...{ maxPoolSize: 2, promoteLongs: false, w: 1, readConcernLevel: 'local' },
    })
    const store = new MongoStore({ client, database: 'shop', prefix: freshPrefix() })
    const effects = { inboundId: 'm1', checkpoint: testCheckpoint('7:1'), expectedRevision: null }
    await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        expect(await store.commitState('k', 7, '7#1', effects)).toMatchObject({ outcome: 'committed' })
        expect((await store.openState(`other ${n}`, 1))?.revision).toBeNull()
      }),
    )
    await store.journal.record('k', testMessage('m2'))
    expect((await store.journal.oldest('k'))?.seq).toBe(1)
    await store.close()
    expect(await client.db('shop').command({ ping: 1 })).toMatchObject({ ok: 1 })
    await client.close()
  })
})
