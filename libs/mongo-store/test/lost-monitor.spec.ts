/**
 * A driver's client that finds no server any more although it is there: what a connection leaves behind that is closed while
 * its monitor writes to it. Played by stopping the monitor, since the moment itself comes once in hundreds of restarts.
 */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { MongoClient } from 'mongodb'
import { testCheckpoint } from '@botmesh/core/testing'
import { MongoDouble } from '../../../test/doubles/mongo/index.js'
import { MongoStore } from '../src/index.js'
import { freshPrefix } from './bed.js'

const double = new MongoDouble()
beforeAll(() => double.start())
afterAll(() => double.stop())

/** What is used of the driver's inside. */
interface Inside {
  topology: {
    s: { servers: Map<string, { monitor: { close(): void } }> }
    description: { servers: Map<string, object> }
    serverUpdateHandler(description: object): void
  }
}

function lose(client: MongoClient): void {
  const { topology } = client as unknown as Inside
  for (const [address, { monitor }] of topology.s.servers) {
    const { constructor } = topology.description.servers.get(address)!
    monitor.close()
    // Of a server that nothing is known of.
    topology.serverUpdateHandler(Reflect.construct(constructor, [address]) as object)
  }
}

describe('S1: a client that finds its server no more', () => {
  it('is replaced: calls work again without a restart, and it is closed', async () => {
    const made = jest.spyOn(MongoClient.prototype, 'db')
    const closed = jest.spyOn(MongoClient.prototype, 'close')
    const store = new MongoStore({ url: double.url(), prefix: freshPrefix(), callTimeoutMs: 300 })
    try {
      await store.setCheckpoint('k', testCheckpoint('1:1'))
      const [first] = made.mock.contexts as MongoClient[]
      lose(first!)
      expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
      expect(await store.acquireLockFenced('job', 1000)).not.toBeNull()
      await store.close()
      expect(closed.mock.contexts).toContain(first)
      expect(new Set(made.mock.contexts).size).toBe(new Set(closed.mock.contexts).size)
    } finally {
      await store.close()
      made.mockRestore()
      closed.mockRestore()
    }
  })

  it('is closed also while it is away and a late call waits for it to be opened again', async () => {
    const gone = new MongoDouble()
    await gone.start()
    const limits = { callTimeoutMs: 300, startTimeoutMs: 1000 }
    const store = new MongoStore({ url: gone.url(), prefix: freshPrefix(), ...limits })
    await store.setCheckpoint('k', testCheckpoint('1:1'))
    await gone.stop()
    const early = store.getCheckpoint('k').catch(String)
    const closed = store.close()
    // The early call is still looking for a server.
    await new Promise((resolve) => setTimeout(resolve, 50))
    const late = store.getCheckpoint('k').catch(String)
    expect(await Promise.all([early, late, closed])).toEqual([
      expect.stringMatching(/did not answer/),
      expect.stringMatching(/did not answer/),
      undefined,
    ])
    await store.close()
  })
})
