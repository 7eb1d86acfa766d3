/** Z9: a session in a store: batches whole or not at all, former leaders refused, whatever dies or is lost. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigError, LeaseLostError, MemoryStore, StoreError } from '@botmesh/core'
import { BaileysProvider, importFolder, StoreStorage, type SessionRecords } from '@botmesh/baileys'
import { nextWrite, PAGES, pageOf, TAIL_LIMIT } from '../src/session-pages.js'
import { ReplicaStore } from './support/store-faults.js'

let shared: MemoryStore
beforeEach(() => {
  shared = new MemoryStore()
})

const open = (fence: number | undefined, store: ReplicaStore | MemoryStore = shared) =>
  new StoreStorage(store).open('tienda', fence)
const changes = (fields: Record<string, string | null>) => new Map(Object.entries(fields))
const NAMES = ['creds', ...Array.from({ length: 20 }, (_, n) => `pre-key-${n}`)]
/** A batch that changes every record at once, and is too large for the tail: text `n` in each. */
const round = (n: number) => new Map(NAMES.map((name) => [name, `${n}:${'x'.repeat(1700)}`]))

/** The round that all records are of. */
async function roundOf(records: SessionRecords): Promise<number | undefined> {
  const found = await records.read(NAMES)
  const rounds = new Set([...found.values()].map((text) => Number(text.split(':')[0])))
  expect([0, NAMES.length]).toContain(found.size)
  expect(rounds.size).toBeLessThanOrEqual(1)
  return [...rounds][0]
}

describe('a session in a store', () => {
  it('reads what was written, before and after it is durable; the last call wins; null removes', async () => {
    const records = await open(5)
    const first = records.write(changes({ creds: '1', 'pre-key-1': 'a' }))
    const second = records.write(changes({ creds: '2', 'pre-key-1': null }))
    expect(await records.read(['creds', 'pre-key-1', 'absent'])).toEqual(changes({ creds: '2' }))
    await Promise.all([first, second])
    expect(await (await open(6)).read(['creds', 'pre-key-1'])).toEqual(changes({ creds: '2' }))
  })

  it('many small changes share a write', async () => {
    const store = new ReplicaStore(shared)
    const records = await open(5, store)
    const before = store.writes
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => records.write(changes({ [`session-${n}`]: 'x' }))),
    )
    expect(store.writes - before).toBe(1)
  })

  it('what has grown is spread over pages, and comes back whole', async () => {
    const records = await open(5)
    const expected = new Map<string, string>()
    for (let n = 0; n < 300; n++) {
      const name = `session-${n % 120}.0`
      const text = `${n}:${'y'.repeat(700)}`
      await records.write(changes({ [name]: n % 7 === 0 ? null : text }))
      if (n % 7 === 0) expected.delete(name)
      else expected.set(name, text)
    }
    const names = Array.from({ length: 120 }, (_, n) => `session-${n}.0`)
    expect(await records.read(names)).toEqual(expected)
    expect(await (await open(6)).read(names)).toEqual(expected)
  })

  it('K2: a former leader is refused for good, and its late writes change nothing', async () => {
    const old = await open(5)
    await old.write(round(1))
    const next = await open(6)
    await next.write(round(2))
    await expect(old.write(round(9))).rejects.toBeInstanceOf(LeaseLostError)
    await expect(old.write(changes({ creds: 'late' }))).rejects.toBeInstanceOf(LeaseLostError)
    await old.close()
    await next.write(round(3))
    expect(await roundOf(await open(7))).toBe(3)
    await expect(open(5)).rejects.toBeInstanceOf(LeaseLostError)
  })

  it('a batch whose reply is lost is settled before the next one; what failed goes with the next', async () => {
    const store = new ReplicaStore(shared)
    const records = await open(5, store)
    for (let n = 1; n <= 6; n++) {
      if (n % 2 === 0) store.lost.add(store.writes + (n === 2 ? 1 : 10))
      else store.failing.add(store.writes + (n === 3 ? 1 : 10))
      await records.write(round(n)).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError))
      expect(await roundOf(records)).toBe(n)
    }
    await records.close()
    expect(await roundOf(await open(6))).toBe(6)
  })

  it('logged out: the next opening finds it empty, and it can be paired again', async () => {
    const records = await open(5)
    await records.write(round(1))
    await records.retire()
    const again = await open(6)
    expect(await roundOf(again)).toBeUndefined()
    await again.write(round(2))
    expect(await roundOf(await open(7))).toBe(2)
  })

  it('without coordination it is written unconditionally', async () => {
    await (await open(5)).write(round(1))
    const alone = await open(undefined)
    await alone.write(round(2))
    await alone.write(round(3))
    expect(await roundOf(await open(undefined))).toBe(3)
  })

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

  it('a store whose writes cannot be fenced is refused at construction', () => {
    const plain = { kind: 'plain', getCheckpoint: async () => null, setCheckpoint: async () => {} }
    const make = () => new BaileysProvider({ session: 'tienda', store: plain })
    expect(make).toThrow(ConfigError)
    expect(make).toThrow('setCheckpointIf')
    const nothing = () => new BaileysProvider({ session: 'tienda', store: {} as never })
    expect(nothing).toThrow('"store"')
  })
})

describe('scenario 22: dead at every write', () => {
  it('I4: whichever write it is, before or after: the next leader finds one whole round, the last or the one before', async () => {
    // How many writes it takes, first.
    const counting = new ReplicaStore(new MemoryStore())
    const counted = await open(5, counting)
    for (const n of [1, 2, 3]) await counted.write(round(n))
    expect(counting.writes).toBeGreaterThan(40)
    for (let at = 1; at <= counting.writes; at++) {
      for (const done of ['before', 'after'] as const) {
        shared = new MemoryStore()
        const store = new ReplicaStore(shared)
        store.dies = { at, done }
        let acknowledged = 0
        const life = async () => {
          const records = await open(5, store)
          for (const n of [1, 2, 3]) {
            await records.write(round(n))
            acknowledged = n
          }
        }
        await Promise.race([life(), store.died])
        const next = await open(6)
        const found = (await roundOf(next)) ?? 0
        expect(found).toBeGreaterThanOrEqual(acknowledged)
        expect(found).toBeLessThanOrEqual(acknowledged + 1)
        expect(next.damaged).toEqual([])
        await next.write(round(4))
        expect(await roundOf(await open(7))).toBe(4)
      }
    }
  })

  it('dead while it opens, or while the next one does', async () => {
    await (await open(5)).write(round(1))
    const dying = new ReplicaStore(shared)
    dying.dies = { at: 1, done: 'after' }
    await Promise.race([open(6, dying), dying.died])
    expect(await roundOf(await open(7))).toBe(1)
  })
})

describe('from a folder', () => {
  it('importFolder copies every record under the name of its file, once, and says what is wrong', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'botmesh-import-'))
    try {
      await mkdir(join(folder, 'tienda'))
      const missing = importFolder({ folder, session: 'tienda', store: shared })
      await expect(missing).rejects.toThrow(/no paired session/)
      await writeFile(join(folder, 'tienda', 'creds.json'), '{"n":1}')
      await writeFile(join(folder, 'tienda', 'sender-key-1@g.us--5@lid--0.json'), '"k"')
      expect(await importFolder({ folder, session: 'tienda', store: shared })).toBe(2)
      const found = await (await open(5)).read(['creds', 'sender-key-1@g.us::5@lid::0'])
      expect(found).toEqual(changes({ creds: '{"n":1}', 'sender-key-1@g.us::5@lid::0': '"k"' }))
      await expect(importFolder({ folder, session: 'tienda', store: shared })).rejects.toThrow(/already/)
      await writeFile(join(folder, 'tienda', 'creds.json'), '{"n":2}')
      await importFolder({ folder, session: 'tienda', store: shared, overwrite: true })
      expect((await (await open(6)).read(['creds'])).get('creds')).toBe('{"n":2}')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  it('with `folder` beside `store` a session is taken over at the first opening, and never again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'botmesh-import-'))
    try {
      await mkdir(join(folder, 'tienda'))
      await writeFile(join(folder, 'tienda', 'creds.json'), '{"n":1}')
      const storage = new StoreStorage(shared, { importFrom: folder })
      const records = await storage.open('tienda', 5)
      expect((await records.read(['creds'])).get('creds')).toBe('{"n":1}')
      await records.retire()
      expect((await (await storage.open('tienda', 6)).read(['creds'])).size).toBe(0)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
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
