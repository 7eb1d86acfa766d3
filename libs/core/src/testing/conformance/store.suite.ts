/**
 * Conformance of stores: checkpoints with compare-and-set, fences and tombstones, users, locks, log (I5, I9, I11).
 * The journal and the outbox are in `store-journal.suite.ts`, fenced commits in `store-state.suite.ts`, appointments in
 * `store-timers.suite.ts`, commits of turns that share the backend in `shared-state.suite.ts`; `storeSuite` runs all that
 * the guarantees name.
 */
import { ConfigError } from '../../contracts/errors.js'
import type { LockStore } from '../../contracts/lock-store.js'
import { sharedStateSuite } from './shared-state.suite.js'
import { checkpoint, inTime, onStore, type StoreFixture } from './store-bed.js'
import { journalSuite } from './store-journal.suite.js'
import { stateSuite } from './store-state.suite.js'
import { timersSuite } from './store-timers.suite.js'
import { rejection, type TestApi } from './test-api.js'

export function storeSuite(api: TestApi, fixture: StoreFixture): void {
  const { guarantees } = fixture
  api.describe(`${fixture.name}: store`, () => {
    checkpointTests(api, fixture)
    if (guarantees.conditional) conditionalTests(api, fixture)
    userTests(api, fixture)
    if (guarantees.locks) lockTests(api, fixture)
    if (guarantees.log) logTests(api, fixture)
    if (guarantees.state) stateSuite(api, fixture)
    if (guarantees.journal || guarantees.outbox) journalSuite(api, fixture)
    if (guarantees.timers) timersSuite(api, fixture)
    if (guarantees.coordinator) sharedStateSuite(api, fixture)
  })
}

function checkpointTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'K1: what was written is what is read, by every client, as JSON and without aliasing',
    onStore(fixture, async (store, bed) => {
      expect(await store.getCheckpoint('fake%3Atest/100')).toBeNull()
      const written = checkpoint('1:1')
      await store.setCheckpoint('fake%3Atest/100', written)
      const copy = structuredClone(written)
      written.state['size'] = 'changed afterwards'
      expect(await bed.store().getCheckpoint('fake%3Atest/100')).toEqual(copy)
      const read = await store.getCheckpoint('fake%3Atest/100')
      if (read) read.state['size'] = 'changed by a reader'
      expect(await store.getCheckpoint('fake%3Atest/100')).toEqual(copy)
      expect(await store.getCheckpoint('fake%3Atest/10')).toBeNull()
      await store.clearCheckpoint('fake%3Atest/100')
      await store.clearCheckpoint('fake%3Atest/100')
      expect(await store.getCheckpoint('fake%3Atest/100')).toBeNull()
    }),
  )

  it(
    'H1: an ephemeral checkpoint expires after its last write; others stay',
    onStore(fixture, async (store, bed) => {
      const seen = await inTime(bed, 300, async (ttlMs, wait) => {
        await store.setCheckpoint('short', checkpoint('1:1', { ephemeral: true, ttlMs }))
        await store.setCheckpoint('long', checkpoint('1:2', { ttlMs }))
        await wait()
        await store.setCheckpoint('short', checkpoint('1:3', { ephemeral: true, ttlMs }))
        await wait()
        const kept = await store.getCheckpoint('short')
        await wait()
        return kept
      })
      expect(seen?.revision).toBe('1:3')
      expect(await store.getCheckpoint('short')).toBeNull()
      expect((await store.getCheckpoint('long'))?.revision).toBe('1:2')
    }),
  )
}

function conditionalTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'K2: compare-and-set by revision: chained writes pass, others do not',
    onStore(fixture, async (store) => {
      const set = (revision: string, expected: string | null, fence = 10) =>
        store.setCheckpointIf?.('k', checkpoint(revision), expected, fence)
      expect(await set('10:1', 'unknown')).toBe(false)
      expect(await set('10:1', null)).toBe(true)
      expect(await set('10:2', null)).toBe(false)
      expect(await set('10:2', '10:1')).toBe(true)
      expect(await set('10:3', '10:1')).toBe(false)
      expect((await store.getCheckpoint('k'))?.revision).toBe('10:2')
    }),
  )

  it(
    'K2: a write resent after a lost reply answers true and changes nothing',
    onStore(fixture, async (store) => {
      expect(await store.setCheckpointIf?.('k', checkpoint('10:1'), null, 10)).toBe(true)
      expect(await store.setCheckpointIf?.('k', checkpoint('10:1'), null, 10)).toBe(true)
      expect(await store.clearCheckpointIf?.('k', '10:1', 10)).toBe(true)
      expect(await store.clearCheckpointIf?.('k', '10:1', 10)).toBe(true)
      expect(await store.getCheckpoint('k')).toBeNull()
    }),
  )

  it(
    'K2, I5: a lower fence neither writes nor clears once a higher one has written',
    onStore(fixture, async (store) => {
      expect(await store.setCheckpointIf?.('k', checkpoint('20:1'), null, 20)).toBe(true)
      expect(await store.setCheckpointIf?.('k', checkpoint('10:2'), '20:1', 10)).toBe(false)
      expect(await store.clearCheckpointIf?.('k', '20:1', 10)).toBe(false)
      expect((await store.getCheckpoint('k'))?.revision).toBe('20:1')
    }),
  )

  it(
    'K2, I11: a tombstone outlives a write in flight: nothing of before the removal comes back',
    onStore(fixture, async (store) => {
      await store.setCheckpointIf?.('k', checkpoint('10:1'), null, 10)
      expect(await store.clearCheckpointIf?.('k', '10:1', 20)).toBe(true)
      // In flight since before: an older fence, and the same holder's older view.
      expect(await store.setCheckpointIf?.('k', checkpoint('10:2'), '10:1', 10)).toBe(false)
      expect(await store.setCheckpointIf?.('k', checkpoint('10:3'), null, 10)).toBe(false)
      expect(await store.setCheckpointIf?.('k', checkpoint('20:2'), '10:1', 20)).toBe(false)
      expect(await store.getCheckpoint('k')).toBeNull()
      expect(await store.setCheckpointIf?.('k', checkpoint('20:3'), null, 20)).toBe(true)
      expect((await store.getCheckpoint('k'))?.revision).toBe('20:3')
    }),
  )

  it(
    'K2: of many writers with one expectation exactly one wins',
    onStore(fixture, async (store, bed) => {
      await store.setCheckpointIf?.('k', checkpoint('10:0'), null, 10)
      const stores = [store, bed.store(), bed.store()]
      const write = async (n: number): Promise<boolean | undefined> =>
        stores[n % 3]?.setCheckpointIf?.('k', checkpoint(`10:${n + 1}`), '10:0', 10)
      const all = Array.from({ length: 30 }, (_, n) => write(n))
      const won = (await Promise.all(all)).flatMap((one, n) => (one ? [`10:${n + 1}`] : []))
      expect(won.length).toBe(1)
      expect((await store.getCheckpoint('k'))?.revision).toBe(won[0])
    }),
  )

  it(
    'H1: an expired ephemeral checkpoint counts as none',
    onStore(fixture, async (store, bed) => {
      await store.setCheckpointIf?.('k', checkpoint('10:1', { ephemeral: true, ttlMs: 100 }), null, 10)
      await bed.pass(200)
      expect(await store.getCheckpoint('k')).toBeNull()
      expect(await store.setCheckpointIf?.('k', checkpoint('20:1'), null, 20)).toBe(true)
    }),
  )
}

function userTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'scenario 13: user state is compare-and-set by a revision that is never reused',
    onStore(fixture, async (store, bed) => {
      expect(await store.getUser('u')).toBeNull()
      const first = await store.setUserIf('u', { name: 'Ana', tags: ['a'] }, null)
      expect(await store.setUserIf('u', { name: 'Eva' }, null)).toBeNull()
      expect(await bed.store().getUser('u')).toEqual({ data: { name: 'Ana', tags: ['a'] }, revision: first })
      const second = await store.setUserIf('u', { name: 'Eva' }, first)
      expect(second).not.toBe(first)
      expect(await store.setUserIf('u', { name: 'Luz' }, first)).toBeNull()
      expect((await store.getUser('u'))?.data).toEqual({ name: 'Eva' })
    }),
  )

  it(
    'scenario 13: of many concurrent increments none is lost',
    onStore(fixture, async (store, bed) => {
      const other = bed.store()
      const increment = async (by: typeof store | typeof other): Promise<void> => {
        for (;;) {
          const user = await by.getUser('u')
          const count = Number(user?.data['count'] ?? 0)
          if ((await by.setUserIf('u', { count: count + 1 }, user?.revision ?? null)) !== null) return
        }
      }
      await Promise.all(Array.from({ length: 20 }, (_, n) => increment(n % 2 ? store : other)))
      expect((await store.getUser('u'))?.data).toEqual({ count: 20 })
    }),
  )
}

interface Leasing {
  leases(): Pick<LockStore, 'acquireLockFenced' | 'renewLock' | 'releaseLock'>
}

function lockTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'S2: a lock is exclusive, fenced, renewable and free after its TTL',
    onStore(fixture, async (store, bed) => {
      const { first, second, seen } = await inTime(bed, 300, async (ttlMs, wait) => {
        const name = `job ${ttlMs}`
        const lock = await store.acquireLockFenced(name, ttlMs)
        const held = await store.acquireLockFenced(name, ttlMs)
        const other = await store.acquireLockFenced(`other ${name}`, ttlMs)
        await wait()
        const renewals = [
          await store.renewLock(name, lock?.token ?? '', ttlMs),
          await rejection(store.renewLock(name, other?.token ?? '', ttlMs)),
          await rejection(store.releaseLock(name, other?.token ?? '')),
          await rejection(store.releaseLock(name, 'guessed')),
        ]
        await wait()
        const kept = await store.acquireLockFenced(name, ttlMs)
        await wait()
        const next = await store.acquireLockFenced(name, 60_000)
        return { first: lock, second: next, seen: { name, held, other: other?.token, renewals, kept } }
      })
      const { name, renewals } = seen
      expect(seen).toMatchObject({ held: null, kept: null })
      expect(renewals[0]).toBe(true)
      // A token of another lock, or of none, is a mistake, and the error names the lock.
      for (const mistake of renewals.slice(1)) {
        expect(mistake instanceof ConfigError).toBe(true)
        expect(String(mistake).includes(`"${name}"`)).toBe(true)
        expect(String(mistake).includes(seen.other ?? '')).toBe(false)
      }
      expect(seen.other).not.toBe(first?.token)
      expect(second?.fence).toBeGreaterThan(first?.fence ?? Infinity)
      expect(Number.isSafeInteger(second?.fence)).toBe(true)
      expect(await store.renewLock(name, first?.token ?? '', 300)).toBe(false)
      expect(await store.releaseLock(name, first?.token ?? '')).toBe(false)
      expect(await store.releaseLock(name, second?.token ?? '')).toBe(true)
      expect(await store.releaseLock(name, second?.token ?? '')).toBe(false)
      const third = await store.acquireLockFenced(name, 300)
      expect(third?.fence).toBeGreaterThan(second?.fence ?? Infinity)
    }),
  )

  it(
    'S2: of many that want a lock at once exactly one gets it; a TTL must be positive',
    onStore(fixture, async (store, bed) => {
      const other = bed.store() as typeof store
      const all = Array.from({ length: 20 }, (_, n) => (n % 2 ? store : other).acquireLockFenced('job', 5000))
      expect((await Promise.all(all)).filter((one) => one !== null).length).toBe(1)
      expect((await rejection(store.acquireLockFenced('job', 0))) instanceof ConfigError).toBe(true)
      expect((await rejection(store.renewLock('job', 'any', -1))) instanceof ConfigError).toBe(true)
      // The error names the option and the value.
      expect(/ttlMs.*-5/.test(String(await rejection(store.acquireLockFenced('job', -5))))).toBe(true)
    }),
  )

  it(
    'S2, bad input: a lock has a name, and a TTL that can be added to the time',
    onStore(fixture, async (store) => {
      for (const name of [undefined, null, '', 5, {}] as unknown as string[]) {
        for (const refused of [store.acquireLockFenced(name, 1000), store.releaseLock(name, 'any')]) {
          const error = await rejection(refused)
          expect(error instanceof ConfigError).toBe(true)
          expect(/name of a lock/.test(String(error))).toBe(true)
        }
      }
      expect(/ttlMs.*1e\+300/.test(String(await rejection(store.acquireLockFenced('job', 1e300))))).toBe(true)
    }),
  )

  it(
    'S2: leases() is apart from the application’s locks and just as exclusive',
    onStore(fixture, async (store, bed) => {
      const leases = (store as unknown as Leasing).leases()
      const others = (bed.store() as unknown as Leasing).leases()
      const lease = await leases.acquireLockFenced('scheduler', 60_000)
      expect(await others.acquireLockFenced('scheduler', 60_000)).toBeNull()
      expect((await store.acquireLockFenced('scheduler', 60_000)) === null).toBe(false)
      expect(await others.renewLock('scheduler', lease?.token ?? '', 60_000)).toBe(true)
      expect(await leases.releaseLock('scheduler', lease?.token ?? '')).toBe(true)
    }),
  )
}

function logTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'a log keeps order, reads after an id, and keeps the newest entries only',
    onStore(fixture, async (store, bed) => {
      const log = store.log
      const other = bed.store().log
      if (!log || !other) throw new Error('The guarantees promise a log.')
      const ids: string[] = []
      for (let n = 0; n < 12; n += 1) ids.push(await log.append('room', `entry ${n}`, { keep: 10 }))
      const all = await other.read('room', null)
      expect(all.map((entry) => entry.payload)).toEqual(
        Array.from({ length: 10 }, (_, n) => `entry ${n + 2}`),
      )
      const after = await other.read('room', ids[8] ?? '', 2)
      expect(after.map((entry) => entry.payload)).toEqual(['entry 9', 'entry 10'])
      expect(await other.read('elsewhere', null)).toEqual([])
    }),
  )

  it(
    'a subscription hears appends of every client until it is ended',
    onStore(fixture, async (store, bed) => {
      const log = store.log
      const other = bed.store().log
      if (!log || !other) throw new Error('The guarantees promise a log.')
      let heard: () => void = () => undefined
      let count = 0
      const next = (): Promise<void> => new Promise((resolve) => (heard = resolve))
      const end = await log.subscribe('room', () => {
        count += 1
        heard()
      })
      const first = next()
      await other.append('room', 'hola')
      await bed.until(first)
      await end()
      const before = count
      await other.append('room', 'nadie')
      await bed.pass(50)
      expect(count).toBe(before)
    }),
  )
}
