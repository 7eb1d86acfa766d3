/** The store keeps its contract, and a bot on it goes on after a restart. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { FakeProvider, ManualClock, storeSuite } from '@botmesh/core/testing'
import { onTestEnd } from '../../test/support/index.js'
import { createBot } from '../plain-bot/bot.js'
import { FileStore } from './file-store.js'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'file-store-'))
  onTestEnd(() => rmSync(path, { recursive: true, force: true }))
  return path
}

// --- conformance
storeSuite(
  { describe, it, expect },
  {
    name: 'file store',
    guarantees: {
      conditional: true,
      ...{ state: false, journal: false, outbox: false, log: false, locks: false, coordinator: false },
    },
    bed: async () => {
      const clock = new ManualClock()
      const store = new FileStore(folder(), clock)
      return {
        store: () => store,
        pass: async (ms) => clock.freeze(ms),
        until: (promise) => promise,
        close: async () => undefined,
      }
    },
  },
)
// --- end

describe('examples: a store of one’s own', () => {
  it('K1: an order goes on after a restart', async () => {
    const path = folder()
    const provider = new FakeProvider()
    const first = createBot({ provider, store: new FileStore(path) })
    await first.start()
    await provider.receive('order')
    expect((await provider.nextSent()).text).toBe('Which size?')
    await first.stop()

    const second = createBot({ provider, store: new FileStore(path) })
    await second.start()
    await provider.receive('M')
    expect((await provider.nextSent()).text).toBe('Where shall it go?')
    await second.stop()
  })
})
