/**
 * MongoDB that is cut off, silent, killed and restarted, and errors that its servers answer with. On doubles of its own:
 * where a real server is given, the line to it is cut too, but it is nobody's to kill.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { StoreError } from '@botmesh/core'
import { cutSuite, testCheckpoint, testMessage } from '@botmesh/core/testing'
import { MongoDouble } from '../../../test/doubles/mongo/index.js'
import { startFaultProxy } from '../../../test/support/index.js'
import { MongoStore, type MongoStoreOptions } from '../src/index.js'
import { DATABASE, freshPrefix, isReal, serverUrl } from './bed.js'

const double = new MongoDouble()
beforeAll(() => double.start())
afterAll(() => double.stop())

cutSuite(
  { describe, it, expect },
  {
    name: 'MongoStore',
    bed: async () => {
      const url = isReal ? await serverUrl() : double.url()
      const line = await startFaultProxy({ to: url })
      const prefix = freshPrefix()
      const stores: MongoStore[] = []
      const make = (at: string, options: Partial<MongoStoreOptions> = {}) => {
        const settings = { database: DATABASE, prefix, connections: 4, callTimeoutMs: 1000 }
        const one = new MongoStore({ url: at, ...settings, ...options })
        stores.push(one)
        return one
      }
      const through = new URL(line.url)
      // Else the driver goes straight to the address that the server says it has.
      through.searchParams.set('directConnection', 'true')
      return {
        store: (options = {}) => make(through.href, options),
        witness: () => make(url),
        line,
        restart: async () => {
          if (isReal) line.reset()
          else await double.restart()
        },
        pass: async (ms) => {
          await sleep(ms)
        },
        close: async () => {
          await Promise.all(stores.map((one) => one.close()))
          await line.stop()
        },
      }
    },
  },
)

async function onDouble(test: (store: MongoStore) => Promise<void>): Promise<void> {
  const store = new MongoStore({ url: double.url(), prefix: freshPrefix(), callTimeoutMs: 1000 })
  try {
    await store.open()
    await test(store)
  } finally {
    await store.close()
  }
}

const NOT_PRIMARY = { code: 10107, codeName: 'NotWritablePrimary', labels: ['RetryableWriteError'] }

describe('S1: what a replica set answers while it changes its primary', () => {
  it('a write that was carried out and whose connection was lost is recognised when it comes again', () =>
    onDouble(async (store) => {
      double.failNext({ command: 'insert', error: 'cut', applied: true })
      expect(await store.setUserIf('u', { name: 'Ana' }, null)).not.toBeNull()
      const lock = await store.acquireLockFenced('job', 60_000)
      double.failNext({ command: 'update', error: 'cut', applied: true })
      expect(await store.releaseLock('job', lock?.token ?? '')).toBe(true)
      double.failNext({ command: 'findAndModify', error: 'cut', applied: true })
      const log = await store.log.append('room', 'once')
      expect((await store.log.read('room', null)).map(({ id }) => id)).toEqual([log])
      await store.journal.record('k', testMessage('m1'))
      double.failNext({ command: 'update', error: 'cut', applied: true })
      expect(await store.journal.fail('k', 'm1', 1, 'boom', 60_000)).toBe(true)
      expect((await store.journal.oldest('k'))?.attempts).toBe(1)
    }))

  it('“not primary” is tried again, by the driver and then by the store', () =>
    onDouble(async (store) => {
      const once = { command: 'findAndModify', error: NOT_PRIMARY, applied: false }
      double.failNext(once, once, once)
      const effects = { inboundId: 'm1', checkpoint: testCheckpoint('7:1'), expectedRevision: null }
      expect(await store.commitState('k', 7, '7#1', effects)).toMatchObject({ outcome: 'committed' })
    }))

  it('no majority in time: the fate is unknown, a copy meets the receipt', () =>
    onDouble(async (store) => {
      await store.openState('k', 7)
      const error = { code: 64, codeName: 'WriteConcernTimeout' }
      double.failNext({ command: 'findAndModify', error, applied: true })
      const effects = { inboundId: 'm1', checkpoint: testCheckpoint('7:1'), expectedRevision: null }
      expect(await store.commitState('k', 7, '7#1', effects)).toMatchObject({ revision: '7:1' })
    }))

  it('what may not be repeated is reported as retryable, and not repeated by the store', () =>
    onDouble(async (store) => {
      const error = { code: 64, codeName: 'WriteConcernTimeout' }
      double.failNext({ command: 'findAndModify', error, applied: true })
      const seen: unknown = await store.log.append('room', 'once').catch((reason: unknown) => reason)
      expect(seen).toBeInstanceOf(StoreError)
      expect(seen).toMatchObject({ retryable: true, details: { store: 'mongo', operation: 'append' } })
      expect((await store.log.read('room', null)).length).toBe(1)
    }))

  it('a write conflict is tried again', () =>
    onDouble(async (store) => {
      const error = { code: 112, codeName: 'WriteConflict' }
      double.failNext({ command: 'update', error, applied: false })
      expect(await store.setCheckpointIf('k', testCheckpoint('7:1'), null, 7)).toBe(true)
    }))

  it('an error that nobody expects is named, with the call and the key', () =>
    onDouble(async (store) => {
      const error = { code: 31249, codeName: 'Location31249' }
      double.failNext({ command: 'findAndModify', error, applied: false })
      const seen: unknown = await store.openState('k', 1).catch((reason: unknown) => reason)
      expect(seen).toMatchObject({ retryable: false, details: { operation: 'openState', key: 'k' } })
      expect(String(seen)).toMatch(/Location31249/)
    }))
})
