/** What every SQL store must do besides the conformance of stores: migrations, names, damage, contention, cleaning up. */
import { ConfigError, StoreError, systemClock, type Clock } from '@botmesh/core'
import { chainOfCommits, rejection, testCheckpoint, testMessage, type TestApi } from '@botmesh/core/testing'
import { SCHEMA_VERSION } from '../migrations.js'
import type { SqlStore, SqlStoreOptions } from '../sql-store.js'

export interface SqlBed {
  readonly prefix: string
  /** Another client of the same tables, unless the options say otherwise. */
  store(options?: SqlStoreOptions): SqlStore
  /** Runs a statement beside the store, as an administrator would. */
  execute(statement: string): Promise<Record<string, unknown>[]>
  pass(ms: number): Promise<void>
  close(): Promise<void>
}

export interface SqlFixture {
  name: string
  /** Empty, and of its own for each test. */
  bed(): Promise<SqlBed>
}

type Test = (bed: SqlBed) => Promise<void>

export function sqlSuite(api: TestApi, fixture: SqlFixture): void {
  const on = (test: Test) => async () => {
    const bed = await fixture.bed()
    try {
      await test(bed)
    } finally {
      await bed.close()
    }
  }
  api.describe(`${fixture.name}: tables`, () => {
    migrationTests(api, on)
    nameTests(api, on)
    damageTests(api, on)
    contentionTests(api, on)
    cleaningTests(api, on)
  })
}

type On = (test: Test) => () => Promise<void>

function migrationTests({ it, expect }: TestApi, on: On): void {
  it(
    'S1: replicas that start together migrate once',
    on(async (bed) => {
      const stores = Array.from({ length: 8 }, () => bed.store())
      await Promise.all(stores.map((one) => one.open()))
      const rows = await bed.execute(`select version from ${bed.prefix}_migrations`)
      expect(rows.map(({ version }) => Number(version))).toEqual(
        Array.from({ length: SCHEMA_VERSION }, (_, n) => n + 1),
      )
      await Promise.all(stores.map((one, n) => one.setCheckpoint(`k${n}`, testCheckpoint('1:1'))))
      expect((await stores[0]?.getCheckpoint('k7'))?.revision).toBe('1:1')
    }),
  )

  it(
    'S1: a schema of a newer release is refused with an error that names both versions',
    on(async (bed) => {
      await bed.store().open()
      await bed.execute(
        `insert into ${bed.prefix}_migrations (version, at) values (${SCHEMA_VERSION + 6}, 0)`,
      )
      const error = await rejection(bed.store().open())
      expect(error instanceof ConfigError).toBe(true)
      expect(String(error).includes(`version ${SCHEMA_VERSION + 6}`)).toBe(true)
      expect(String(error).includes(`up to ${SCHEMA_VERSION}`)).toBe(true)
      expect(String(error).includes(bed.prefix)).toBe(true)
    }),
  )

  it(
    'C4: two prefixes never see each other',
    on(async (bed) => {
      const [one, other] = [bed.store(), bed.store({ prefix: `${bed.prefix}x` })]
      await one.setCheckpoint('k', testCheckpoint('1:1'))
      await one.journal.record('k', testMessage('m1'))
      expect(await other.getCheckpoint('k')).toBeNull()
      expect(await other.journal.oldest('k')).toBeNull()
      await other.acquireLockFenced('job', 5000)
      expect((await one.acquireLockFenced('job', 5000)) === null).toBe(false)
    }),
  )

  it(
    'S1: a store that was closed opens again when it is used; closing twice is closing once',
    on(async (bed) => {
      const store = bed.store()
      await store.setCheckpoint('k', testCheckpoint('1:1'))
      await Promise.all([store.close(), store.close()])
      expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
    }),
  )

  it(
    'S1: what is under way when it is closed is done to its end, all statements of it',
    on(async (bed) => {
      const store = bed.store()
      await store.journal.record('k', testMessage('m1'))
      const calls = Array.from({ length: 20 }, (_, n) => [
        store.journal.stranded(0, 10).then((keys) => keys.length),
        store.openState(`k${n}`, 1, { journal: true }).then(() => 0),
      ]).flat()
      const closed = store.close()
      const ended = await Promise.allSettled(calls)
      expect(ended.filter(({ status }) => status === 'rejected')).toEqual([])
      await closed
    }),
  )
}

function nameTests({ it, expect }: TestApi, on: On): void {
  it(
    'names are told apart byte by byte, and come back as they were',
    on(async (bed) => {
      const store = bed.store()
      const names = [
        'a',
        'A',
        'a ',
        ' a',
        'á',
        'a\u0301',
        'a~',
        'a%20',
        'ñandú/👋',
        "o'hara\\",
        '\u0000',
        '\ud800',
      ]
      for (const [n, name] of names.entries()) {
        await store.setCheckpoint(name, testCheckpoint(`${n}:${name}`))
        await store.journal.record(name, testMessage(name))
        expect(await store.setUserIf(name, { name }, null)).not.toBeNull()
      }
      for (const [n, name] of names.entries()) {
        const state = await store.openState(name, n + 1, { journal: true })
        expect(state?.revision).toBe(`${n}:${name}`)
        expect(state?.record?.id).toBe(name)
        expect((await store.getUser(name))?.data).toEqual({ name })
      }
      expect((await store.journal.stranded(0, 100)).sort()).toEqual([...names].sort())
    }),
  )

  it(
    'large and strange values survive; a name that no index can hold is refused, not cut',
    on(async (bed) => {
      const store = bed.store()
      const state = { text: 'ñ👋\u0000\ud800\\\'"%'.repeat(40_000) }
      await store.setCheckpoint('big', testCheckpoint('1:1', { state }))
      expect(await store.getCheckpoint('big')).toEqual(testCheckpoint('1:1', { state }))
      await store.setCheckpoint('x'.repeat(1000), testCheckpoint('1:1'))
      expect((await rejection(store.getCheckpoint('x'.repeat(1001)))) instanceof StoreError).toBe(true)
      expect((await rejection(store.getCheckpoint('é'.repeat(300)))) instanceof StoreError).toBe(true)
    }),
  )
}

const DAMAGED = ['checkpoint', 'marker', 'outbox', 'record']

function damageTests({ it, expect }: TestApi, on: On): void {
  it(
    'scenario 29: values that cannot be read are reported once, kept aside, and block nobody',
    on(async (bed) => {
      const store = bed.store()
      const marker = { v: 1, name: 'x', kind: 'async', reason: 'async' } as const
      const outbox = [{ v: 1, key: 's1', hash: 'h', content: { text: 'x' }, status: 'intended' } as const]
      await store.commitState('k', 10, 't#1', { checkpoint: testCheckpoint('10:1'), marker, outbox })
      await store.journal.record('k', testMessage('m1'))
      await store.journal.record('k', testMessage('m2'))
      await store.setUserIf('u', { name: 'Ana' }, null)
      const { prefix } = bed
      await bed.execute(`update ${prefix}_chats set checkpoint = '{"v":7}', marker = 'not json'`)
      await bed.execute(`update ${prefix}_outbox set content = '[]'`)
      await bed.execute(`update ${prefix}_journal set message = '{' where id = 'm1'`)
      await bed.execute(`update ${prefix}_users set data = '42'`)
      const state = await store.openState('k', 20, { journal: true })
      expect(state).toMatchObject({ checkpoint: null, marker: null, revision: '10:1', outbox: [] })
      expect(state?.damaged?.map(({ what }) => what).sort()).toEqual(DAMAGED)
      expect(state?.damaged?.find(({ what }) => what === 'record')?.key).toBe('k m1')
      for (const what of ['checkpoint', 'marker'] as const) {
        expect(await store.setAside('k', what)).toBe(`table ${prefix}_damaged`)
        expect(await store.setAside('k', what)).toBe('nothing: it can be read')
      }
      expect(await store.journal.fail('k', 'm1', 20, 'unreadable', null)).toBe(true)
      const after = await store.openState('k', 20, { journal: true })
      expect(after).toMatchObject({ checkpoint: null, revision: '10:1', record: { id: 'm2' } })
      expect(after?.damaged).toBeUndefined()
      expect(await store.getUser('u')).toBeNull()
      expect(await store.setUserIf('u', { name: 'Eva' }, null)).not.toBeNull()
      const letters = await store.journal.deadLetters(10)
      expect(letters.map(({ key, record }) => [key, record.id])).toEqual([['k', 'm1']])
      expect(typeof letters[0]?.damaged).toBe('string')
      const kept = await bed.execute(`select what from ${prefix}_damaged`)
      expect(kept.map(({ what }) => String(what)).sort()).toEqual(['checkpoint', 'marker', 'outbox', 'user'])
      // The chat goes on from the revision that its row had.
      const next = { checkpoint: testCheckpoint('20:1'), expectedRevision: '10:1' }
      expect(await store.commitState('k', 20, 't#2', next)).toMatchObject({ outcome: 'committed' })
    }),
  )
}

function contentionTests({ it, expect }: TestApi, on: On): void {
  it(
    'I9: copies of one commit that arrive at the same time have one effect, and each is told so',
    on(async (bed) => {
      const stores = Array.from({ length: 4 }, () => bed.store())
      await Promise.all(stores.map((one) => one.open()))
      await stores[0]?.openState('k', 7)
      for (let n = 1; n <= 12; n += 1) {
        // Without a checkpoint no revision tells a copy from the first: only its receipt does.
        const entry = { v: 1, key: `s${n}`, hash: 'h', content: { text: 'x' }, status: 'intended' } as const
        const effects = { inboundId: `m${n}`, outbox: [entry], marker: null }
        const results = await Promise.all(stores.map((one) => one.commitState('k', 7, `7#${n}`, effects)))
        expect(results).toEqual(results.map(() => ({ outcome: 'committed', revision: null, more: false })))
      }
      const [row] = await bed.execute(`select committed from ${bed.prefix}_chats where k = 'k'`)
      expect(Number(row?.['committed'])).toBe(12)
      expect((await stores[0]?.outbox.entries('k'))?.length).toBe(12)
    }),
  )

  it(
    'I5, Z4: many holders of rising fences on few chats: no write of a lower fence lands after a higher one has read, and each commit is whole',
    on(async (bed) => {
      const stores = [bed.store(), bed.store(), bed.store()]
      const opened = new Map<string, number>()
      const accepted = new Map<string, number>()
      let late = 0
      const hold = async (fence: number): Promise<void> => {
        const store = stores[fence % stores.length] as SqlStore
        const key = `chat${fence % 3}`
        const state = await store.openState(key, fence)
        if (!state) return
        opened.set(key, Math.max(opened.get(key) ?? 0, fence))
        let expectedRevision = state.revision
        for (let n = 1; n <= 4; n += 1) {
          const known = opened.get(key) ?? 0
          const revision = `${fence}:${n}`
          const outbox = [
            { v: 1, key: revision, hash: 'h', content: { text: 'x' }, status: 'intended' } as const,
          ]
          const result = await store.commitState(key, fence, `${fence}#${n}`, {
            ...{ inboundId: revision, checkpoint: testCheckpoint(revision), expectedRevision, outbox },
          })
          if (result.outcome === 'refused') return
          if (known > fence) late += 1
          expectedRevision = revision
          accepted.set(key, (accepted.get(key) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: 45 }, (_, n) => hold(n + 1)))
      expect(late).toBe(0)
      for (const [key, count] of accepted) {
        expect((await stores[0]?.outbox.entries(key))?.length).toBe(count)
      }
      expect([...accepted.values()].reduce((sum, one) => sum + one, 0)).toBeGreaterThan(2)
    }),
  )

  it(
    'I9: copies of one commit that overlap are stored once and answer the same',
    on(async (bed) => {
      const stores = [bed.store(), bed.store(), bed.store()]
      const effects = { inboundId: 'm1', checkpoint: testCheckpoint('10:1'), expectedRevision: null }
      const copies = Array.from({ length: 12 }, (_, n) =>
        (stores[n % 3] as SqlStore).commitState('k', 10, 't#1', effects),
      )
      const answers = await Promise.all(copies)
      for (const one of answers) expect(one).toEqual({ outcome: 'committed', revision: '10:1', more: false })
    }),
  )

  it(
    'D1: copies of one message that arrive on several replicas at once are recorded once',
    on(async (bed) => {
      const stores = [bed.store(), bed.store(), bed.store()]
      const arrival = { messageId: 'm1', timestamp: 1, message: testMessage('m1') }
      const all = Array.from({ length: 15 }, (_, n) => (stores[n % 3] as SqlStore).arrive('k', arrival))
      expect((await Promise.all(all)).filter((one) => one === 'recorded').length).toBe(1)
    }),
  )
}

/** A clock that a test can put forward; the database's own goes on as it does. */
function hastyClock(): Clock & { aheadMs: number } {
  return {
    aheadMs: 0,
    now: () => systemClock.now(),
    monotonic() {
      return systemClock.monotonic() + this.aheadMs
    },
    setTimeout: (fn, ms, options) => systemClock.setTimeout(fn, ms, options),
  }
}

async function column(bed: SqlBed, statement: string): Promise<unknown[]> {
  return (await bed.execute(statement)).map(({ value }) => value)
}

/** The store cleans up in the background. */
async function removed(bed: SqlBed, done: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 500 && !(await done()); looks++) await bed.pass(10)
}

function cleaningTests({ it, expect }: TestApi, on: On): void {
  it(
    'what has had its time is removed in passing, but for a record that a kept answer points to (H7)',
    on(async (bed) => {
      const clock = hastyClock()
      const store = bed.store({ dedupeMs: 2000, clock })
      for (const id of ['m1', 'm2', 'm3']) await store.journal.record('k', testMessage(id))
      const answer = { recordId: 'm2' }
      const checkpoint = testCheckpoint('10:1', { answer })
      await store.commitState('k', 10, 't#1', { inboundId: 'm1', ack: ['m1', 'm2'], checkpoint })
      expect(await store.journal.record('k', testMessage('m1'))).toBe('duplicate')
      await bed.pass(2100)
      expect(await store.isCommitted('k', 'm1')).toBe(false)
      clock.aheadMs = 600_000
      await store.commitState('other', 10, 't#2', {})
      const ids = () => column(bed, `select id as value from ${bed.prefix}_journal order by id`)
      await removed(bed, async () => (await ids()).length === 2)
      expect(await ids()).toEqual(['m2', 'm3'])
      // Receipts live longer.
      const marks = () => column(bed, `select name as value from ${bed.prefix}_marks order by name`)
      await removed(bed, async () => (await marks()).length === 2)
      expect(await marks()).toEqual(['c:t#1', 'c:t#2'])
    }),
  )

  it(
    'logs that have expired are emptied, however many; their numbers go on',
    on(async (bed) => {
      const clock = hastyClock()
      const store = bed.store({ clock })
      await store.log.append('kept', 'a')
      await store.log.append('late', 'a', { ttlMs: 1 })
      const names = Array.from({ length: 450 }, (_, n) => `c${n}`)
      const rows = (row: (name: string) => string) => names.map(row).join(', ')
      const { prefix } = bed
      await bed.execute(
        `insert into ${prefix}_channels (name, last, gone, until) values ${rows((name) => `('${name}', 1, 0, 1)`)}`,
      )
      await bed.execute(
        `insert into ${prefix}_log (channel, id, payload) values ${rows((name) => `('${name}', 1, '"a"')`)}`,
      )
      await bed.pass(10)
      clock.aheadMs = 600_000
      await store.commitState('k', 1, 't#1', {})
      const left = () => column(bed, `select channel as value from ${prefix}_log`)
      await removed(bed, async () => (await left()).length === 1)
      expect(await left()).toEqual(['kept'])
      expect(await store.log.append('late', 'b')).toBe('2')
      expect((await store.log.read('late', null)).map(({ payload }) => payload)).toEqual(['b'])
    }),
  )

  it(
    'committed ids of one chat are bounded, the newest stay',
    on(async (bed) => {
      const store = bed.store()
      await store.commitState('k', 1, 'first', { inboundId: 'first' })
      const rows = Array.from({ length: 650 }, (_, n) => `('k', 'i:old${n}', '', ${9_000_000_000_000 + n})`)
      await bed.execute(
        `insert into ${bed.prefix}_marks (chat, name, value, until) values ${rows.join(', ')}`,
      )
      await bed.execute(`update ${bed.prefix}_chats set committed = 651`)
      await store.commitState('k', 1, 'last', { inboundId: 'last' })
      const [count] = await bed.execute(`select count(*) as n from ${bed.prefix}_marks where name like 'i:%'`)
      expect(Number(count?.['n'])).toBe(500)
      expect(await store.isCommitted('k', 'old649')).toBe(true)
      expect(await store.isCommitted('k', 'old1')).toBe(false)
    }),
  )

  it(
    'the chain of a chat is what was answered',
    on(async (bed) => {
      const { revisions, errors } = await chainOfCommits(bed.store(), 'k', 5, 10)
      expect(errors).toEqual([])
      expect(revisions.length).toBe(10)
      expect((await bed.store().getCheckpoint('k'))?.revision).toBe('5:10')
    }),
  )
}
