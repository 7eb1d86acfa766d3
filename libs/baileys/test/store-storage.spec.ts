/** Z9: a session in a store, on memory; how it lies there. The other stores: test/conformance/whatsapp-session. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigError, LeaseLostError, MemoryStore, StoreError, systemClock, type Clock } from '@botmesh/core'
import { BaileysProvider, StoreStorage, type SessionStore } from '@botmesh/baileys'
import { nextWrite, PAGES, pageOf, TAIL_LIMIT } from '../src/session-pages.js'
import { memoryPlace } from '../../../test/support/whatsapp-session/place.js'
import {
  changes,
  round,
  roundOf,
  storageSuite,
} from '../../../test/support/whatsapp-session/storage.suite.js'

storageSuite(memoryPlace)

describe('K2: writes of others that get in between', () => {
  /** Pauses take no time, and a second passes for this clock with each. */
  function leapingClock(): Clock & { pauses: number } {
    const clock = {
      ...systemClock,
      pauses: 0,
      monotonic: () => clock.pauses * 1000,
      setTimeout: (fn: () => void) => {
        clock.pauses += 1
        return systemClock.setTimeout(fn, 0)
      },
    }
    return clock
  }

  /** Raises fences only with a write, and somebody with `fence` writes before each of the first `times` of others. */
  function contested(shared: MemoryStore, fence: number, times: number): SessionStore {
    let written = 0
    return {
      kind: 'memory',
      getCheckpoint: (key) => shared.getCheckpoint(key),
      setCheckpoint: (key, checkpoint) => shared.setCheckpoint(key, checkpoint),
      setCheckpointIf: async (key, checkpoint, expected, own) => {
        if (written < times) {
          const theirs = { ...checkpoint, revision: `${fence}:theirs-${++written}` }
          expect(await shared.setCheckpointIf(key, theirs, expected, fence)).toBe(true)
        }
        return shared.setCheckpointIf(key, checkpoint, expected, own)
      },
    }
  }

  it('a former leader’s: the leadership is not lost by their number, however many', async () => {
    const shared = new MemoryStore()
    const clock: Clock = { ...leapingClock(), monotonic: () => 0 }
    const records = await new StoreStorage(contested(shared, 5, 200), { clock }).open('tienda', 6)
    await records.write(changes({ creds: '1' }))
    expect((await (await new StoreStorage(shared).open('tienda', 7)).read(['creds'])).get('creds')).toBe('1')
  })

  it('a former leader’s without end: an error that says so and may be tried again, once the time is over', async () => {
    const clock = leapingClock()
    const storage = new StoreStorage(contested(new MemoryStore(), 5, Infinity), { clock })
    const refusal = await storage.open('tienda', 6).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(StoreError)
    expect(refusal).toMatchObject({ retryable: true, message: expect.stringContaining('all the time') })
    expect(clock.pauses).toBe(15)
  })

  it('a later leader’s: lost at once', async () => {
    const clock = leapingClock()
    const storage = new StoreStorage(contested(new MemoryStore(), 7, 1), { clock })
    await expect(storage.open('tienda', 6)).rejects.toBeInstanceOf(LeaseLostError)
    expect(clock.pauses).toBe(1)
  })
})

describe('how it lies there', () => {
  let shared: MemoryStore
  beforeEach(() => {
    shared = new MemoryStore()
  })
  const open = (fence: number) => new StoreStorage(shared).open('tienda', fence)

  it('a page that is gone or damaged is named, and the rest works', async () => {
    const records = await open(5)
    await records.write(round(1))
    for (let page = 0; page < PAGES; page++) {
      if (page !== pageOf('pre-key-3')) continue
      await shared.clearCheckpoint(`session/baileys/tienda/${page}a`)
    }
    const next = await open(6)
    expect(next.damaged).toEqual([`page ${pageOf('pre-key-3')}`])
    expect((await next.read(['creds', 'pre-key-3'])).size).toBe(1)
    await next.write(round(2))
    const healed = await open(7)
    expect(healed.damaged).toEqual([])
    expect(await roundOf(healed)).toBe(2)
  })

  it('a damaged head is an error that says what to do', async () => {
    await (await open(5)).close()
    const head = await shared.getCheckpoint('session/baileys/tienda/head')
    await shared.setCheckpoint('session/baileys/tienda/head', { ...head!, state: { pages: 3 } })
    await expect(open(6)).rejects.toThrow(/importFolder with overwrite/)
  })

  it('a page’s slot that the head names is never written', () => {
    const large = 'z'.repeat(TAIL_LIMIT)
    const first = nextWrite({ pages: {}, tail: {} }, new Map(), changes({ creds: large }))
    const page = pageOf('creds')
    expect(first.pages).toEqual([{ page, slot: 'a', records: { creds: large } }])
    const second = nextWrite(
      first.head,
      changes({ creds: large }) as Map<string, string>,
      changes({ creds: `${large}!` }),
    )
    expect(second.pages[0]?.slot).toBe('b')
    expect(second.head).toEqual({ pages: { [page]: 'b' }, tail: {} })
  })

  it('a store whose writes cannot be fenced is refused at construction', () => {
    const plain = { kind: 'plain', getCheckpoint: async () => null, setCheckpoint: async () => {} }
    const make = () => new BaileysProvider({ session: 'tienda', store: plain })
    expect(make).toThrow(ConfigError)
    expect(make).toThrow('setCheckpointIf')
    const nothing = () => new BaileysProvider({ session: 'tienda', store: {} as never })
    expect(nothing).toThrow('"store"')
  })
})
