/**
 * Z9 on a kind of store: batches whole or not at all, former leaders refused, whatever dies or is lost; taken over
 * from a folder. Through the storage alone; with the real client: session.suite.ts.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { LeaseLostError, StoreError } from '@botmesh/core'
import { importFolder, StoreStorage, type SessionRecords } from '@botmesh/baileys'
import type { SessionBed, SessionPlace } from './place.js'
import { ReplicaStore, type FencingStore } from './replica-store.js'

export const changes = (fields: Record<string, string | null>) => new Map(Object.entries(fields))
const NAMES = ['creds', ...Array.from({ length: 20 }, (_, n) => `pre-key-${n}`)]
/** A batch that changes every record at once, and is too large for the head alone: text `n` in each. */
export const round = (n: number) => new Map(NAMES.map((name) => [name, `${n}:${'x'.repeat(1700)}`]))

/** The round that all records are of. */
export async function roundOf(records: SessionRecords): Promise<number | undefined> {
  const found = await records.read(NAMES)
  const rounds = new Set([...found.values()].map((text) => Number(text.split(':')[0])))
  expect([0, NAMES.length]).toContain(found.size)
  expect(rounds.size).toBeLessThanOrEqual(1)
  return [...rounds][0]
}

export interface DeathsOptions {
  /** Writes at which it dies: the `first`, counted from 1, and from there each `every`-th. Default: at each one. */
  first?: number
  every?: number
  /** Of the test that dies at them. */
  limitMs?: number
}

export function storageSuite(
  place: SessionPlace,
  { first = 1, every = 1, limitMs = 30_000 }: DeathsOptions = {},
): void {
  describe(`Z9: a session in a store: ${place.name}`, () => {
    let bed: SessionBed
    beforeEach(async () => {
      bed = await place.bed()
    })
    afterEach(() => bed.close())

    const open = async (fence: number | undefined, store?: FencingStore, session = 'tienda') =>
      new StoreStorage(store ?? (await bed.store())).open(session, fence)
    const faulty = async () => new ReplicaStore(await bed.store())

    it('reads what was written, before and after it is durable; the last call wins; null removes', async () => {
      const records = await open(5)
      const earlier = records.write(changes({ creds: '1', 'pre-key-1': 'a' }))
      const second = records.write(changes({ creds: '2', 'pre-key-1': null }))
      expect(await records.read(['creds', 'pre-key-1', 'absent'])).toEqual(changes({ creds: '2' }))
      await Promise.all([earlier, second])
      expect(await (await open(6)).read(['creds', 'pre-key-1'])).toEqual(changes({ creds: '2' }))
    })

    it('many small changes share a write', async () => {
      const store = await faulty()
      const records = await open(5, store)
      const before = store.writes
      await Promise.all(
        Array.from({ length: 200 }, (_, n) => records.write(changes({ [`session-${n}`]: 'x' }))),
      )
      expect(store.writes - before).toBe(1)
    })

    it('what has grown is spread over pages, and comes back whole, whatever characters it has', async () => {
      const records = await open(5)
      const expected = new Map<string, string>()
      const names = Array.from({ length: 120 }, (_, n) => `session-${n}.0`)
      for (let n = 0; n < 300; n++) {
        const name = names[n % names.length] ?? ''
        const text = `${n}:${n % 2 === 0 ? 'y'.repeat(700) : 'ñ"\\\n\u{1F511}'.repeat(100)}`
        await records.write(changes({ [name]: n % 7 === 0 ? null : text }))
        if (n % 7 === 0) expected.delete(name)
        else expected.set(name, text)
      }
      expect(await records.read(names)).toEqual(expected)
      expect(await (await open(6)).read(names)).toEqual(expected)
    })

    it('a record of half a megabyte comes back whole', async () => {
      const text = 'k'.repeat(512 * 1024)
      await (await open(5)).write(changes({ 'app-state-sync-version-regular': text }))
      const found = await (await open(6)).read(['app-state-sync-version-regular'])
      expect(found.get('app-state-sync-version-regular') === text).toBe(true)
    })

    it('K2, I4: a former leader is refused for good, and its late writes change nothing', async () => {
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

    it('K2: a former leader that never pauses writing cannot keep the next one out', async () => {
      const old = await open(5)
      let acknowledged = 0
      const firing = (async () => {
        // Ends when it is refused; small ones, which take one write each.
        for (let n = 1; ; n++) {
          await old.write(changes({ creds: String(n) }))
          acknowledged = n
        }
      })().catch((error: unknown) => error)
      const next = await open(6)
      const found = Number((await next.read(['creds'])).get('creds') ?? 0)
      await next.write(changes({ creds: 'next' }))
      expect(await firing).toBeInstanceOf(LeaseLostError)
      // Nothing that was acknowledged is lost.
      expect(found).toBeGreaterThanOrEqual(acknowledged)
      expect((await (await open(7)).read(['creds'])).get('creds')).toBe('next')
    })

    it('a batch whose reply is lost is settled before the next one; what failed goes with the next', async () => {
      const store = await faulty()
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

    it('sessions of one store do not touch each other', async () => {
      const [one, two] = [await open(5, undefined, 'norte'), await open(9, undefined, 'sur')]
      await Promise.all([one.write(round(1)), two.write(round(2))])
      await two.retire()
      expect(await roundOf(await open(6, undefined, 'norte'))).toBe(1)
    })

    it(
      'scenario 22, I4: dead at whichever write, before or after it: the next leader finds one whole round, the last or the one before',
      async () => {
        const [dying, living] = [await bed.store(), await bed.store()]
        const rounds = [1, 2, 3]
        /** @returns how many rounds were acknowledged before it died. */
        const life = async (session: string, store: ReplicaStore): Promise<number> => {
          let acknowledged = 0
          const writing = async () => {
            const records = await open(5, store, session)
            for (const n of rounds) {
              await records.write(round(n))
              acknowledged = n
            }
          }
          await Promise.race([writing(), store.died])
          return acknowledged
        }
        // How many writes it takes, first.
        const counting = new ReplicaStore(dying)
        expect(await life('counted', counting)).toBe(rounds.length)
        expect(counting.writes).toBeGreaterThan(40)
        for (let at = first; at <= counting.writes; at += every) {
          for (const done of ['before', 'after'] as const) {
            const session = `s-${at}-${done}`
            const store = new ReplicaStore(dying)
            store.dies = { at, done }
            const acknowledged = await life(session, store)
            const next = await open(6, living, session)
            const found = (await roundOf(next)) ?? 0
            expect(found).toBeGreaterThanOrEqual(acknowledged)
            expect(found).toBeLessThanOrEqual(acknowledged + 1)
            expect(next.damaged).toEqual([])
            await next.write(round(4))
            expect(await roundOf(await open(7, living, session))).toBe(4)
          }
        }
      },
      limitMs,
    )

    it('scenario 22: dead while it opens', async () => {
      await (await open(5)).write(round(1))
      let fence = 5
      for (const at of [1, 2]) {
        for (const done of ['before', 'after'] as const) {
          const dying = await faulty()
          dying.dies = { at, done }
          await Promise.race([open(++fence, dying), dying.died])
          expect(await roundOf(await open(++fence))).toBe(1)
        }
      }
    })
  })

  importSuite(place)
}

function importSuite(place: SessionPlace): void {
  describe(`Z9: a session from a folder into a store: ${place.name}`, () => {
    let bed: SessionBed
    let folder: string
    beforeEach(async () => {
      bed = await place.bed()
      folder = await mkdtemp(join(tmpdir(), 'botmesh-import-'))
    })
    afterEach(async () => {
      await bed.close()
      await rm(folder, { recursive: true, force: true })
    })

    it('importFolder copies every record under the name of its file, once, and says what is wrong', async () => {
      const store = await bed.store()
      const read = async (fence: number, names: string[]) =>
        (await new StoreStorage(store).open('tienda', fence)).read(names)
      await mkdir(join(folder, 'tienda'))
      await expect(importFolder({ folder, session: 'tienda', store })).rejects.toThrow(/no paired session/)
      await writeFile(join(folder, 'tienda', 'creds.json'), '{"n":1}')
      await writeFile(join(folder, 'tienda', 'sender-key-1@g.us--5@lid--0.json'), '"k"')
      expect(await importFolder({ folder, session: 'tienda', store })).toBe(2)
      const expected = changes({ creds: '{"n":1}', 'sender-key-1@g.us::5@lid::0': '"k"' })
      expect(await read(5, ['creds', 'sender-key-1@g.us::5@lid::0'])).toEqual(expected)
      await expect(importFolder({ folder, session: 'tienda', store })).rejects.toThrow(/already/)
      await writeFile(join(folder, 'tienda', 'creds.json'), '{"n":2}')
      await importFolder({ folder, session: 'tienda', store, overwrite: true })
      expect((await read(6, ['creds'])).get('creds')).toBe('{"n":2}')
    })

    it('with `folder` beside `store` a session is taken over at the first opening, and never again', async () => {
      await mkdir(join(folder, 'tienda'))
      await writeFile(join(folder, 'tienda', 'creds.json'), '{"n":1}')
      const storage = new StoreStorage(await bed.store(), { importFrom: folder })
      const records = await storage.open('tienda', 5)
      expect((await records.read(['creds'])).get('creds')).toBe('{"n":1}')
      await records.retire()
      expect((await (await storage.open('tienda', 6)).read(['creds'])).size).toBe(0)
    })
  })
}
