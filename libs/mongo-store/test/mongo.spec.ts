/** What MongoStore does besides the conformance of stores: schema, names, damage, contention, floods, cleaning up. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError, StoreError, systemClock, type Clock, type OutboxEntry } from '@botmesh/core'
import { chainOfCommits, testCheckpoint, testMessage } from '@botmesh/core/testing'
import { SCHEMA_VERSION, type MongoStore } from '../src/index.js'
import { bed as makeBed } from './bed.js'

type Bed = Awaited<ReturnType<typeof makeBed>>

const on = (test: (bed: Bed) => Promise<void>) => async () => {
  const bed = await makeBed()
  try {
    await test(bed)
  } finally {
    await bed.close()
  }
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  )
}

const intent = (key: string): OutboxEntry => ({
  ...{ v: 1, key, hash: 'h', content: { text: 'x' }, status: 'intended' },
})

describe('schema', () => {
  it(
    'S1: replicas that start together make it once',
    on(async (bed) => {
      const stores = Array.from({ length: 8 }, () => bed.store())
      await Promise.all(stores.map((one) => one.open()))
      expect(await bed.collection('schema').find().toArray()).toEqual([
        { _id: 'schema', version: SCHEMA_VERSION },
      ])
      const indexes = async (name: string) =>
        (await bed.collection(name).listIndexes().toArray()).map((one) => Object.keys(one.key).join())
      expect((await indexes('chats')).sort()).toEqual(['_id', 'deadAt', 'dueAt', 'wakeAt'])
      expect((await indexes('bodies')).sort()).toEqual(['_id', 'at'])
      const [, expiry] = await bed.collection('locks').listIndexes().toArray()
      expect(expiry).toMatchObject({ key: { expireAt: 1 }, expireAfterSeconds: 0 })
      await Promise.all(stores.map((one, n) => one.setCheckpoint(`k${n}`, testCheckpoint('1:1'))))
      expect((await stores[0]?.getCheckpoint('k7'))?.revision).toBe('1:1')
    }),
  )

  it(
    'S1: one of a newer release is refused with an error that names both versions',
    on(async (bed) => {
      await bed.store().open()
      await bed.collection('schema').updateOne({ _id: 'schema' }, { $set: { version: SCHEMA_VERSION + 6 } })
      const error = await rejection(bed.store().open())
      expect(error).toBeInstanceOf(ConfigError)
      expect(String(error)).toContain(`version ${SCHEMA_VERSION + 6}`)
      expect(String(error)).toContain(`up to ${SCHEMA_VERSION}`)
      expect(String(error)).toContain(bed.prefix)
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
      expect(await one.acquireLockFenced('job', 5000)).not.toBeNull()
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
})

describe('names and values', () => {
  it(
    'are told apart byte by byte and come back as they were, whatever they look like to MongoDB',
    on(async (bed) => {
      const store = bed.store()
      const odd = [
        '$fence',
        '$$NOW',
        'a.b',
        '{"$gt":""}',
        '__proto__',
        '~',
        'a~7e~',
        'a~/b',
        '\u0000',
        '\ud800',
      ]
      const names = ['a', 'A', 'a ', ' a', 'á', 'a\u0301', 'ñandú/👋', ...odd]
      for (const [n, name] of names.entries()) {
        await store.setCheckpoint(name, testCheckpoint(`${n}:${name}`, { state: { name } }))
        await store.journal.record(name, testMessage(name))
        const outbox = [{ ...intent(name), hash: name, content: { text: name } }]
        await store.commitState(name, 1, name, { inboundId: name, outbox })
        expect(await store.setUserIf(name, { name }, null)).not.toBeNull()
      }
      for (const [n, name] of names.entries()) {
        const state = await store.openState(name, n + 1, { journal: true })
        expect(state).toMatchObject({ revision: `${n}:${name}`, checkpoint: { state: { name } } })
        expect(state?.record?.message.id).toBe(name)
        expect(state?.outbox).toMatchObject([{ key: name, hash: name, content: { text: name } }])
        expect((await store.getUser(name))?.data).toEqual({ name })
        expect(await store.isCommitted(name, name)).toBe(true)
        expect(await store.journal.fail(name, name, 99, name, null)).toBe(true)
      }
      expect((await store.journal.stranded(0, 100)).length).toBe(0)
      const letters = await store.journal.deadLetters(100)
      expect(letters.map(({ key }) => key).sort()).toEqual([...names].sort())
      expect(letters.every(({ key, record }) => record.lastError === key)).toBe(true)
    }),
  )

  it(
    'S1: what is too long or too large is refused with the key, changes nothing and blocks nobody',
    on(async (bed) => {
      const store = bed.store()
      const state = { text: 'ñ👋\u0000\ud800\\\'"%'.repeat(40_000) }
      await store.setCheckpoint('big', testCheckpoint('1:1', { state }))
      expect(await store.getCheckpoint('big')).toEqual(testCheckpoint('1:1', { state }))
      await store.setCheckpoint('x'.repeat(1000), testCheckpoint('1:1'))
      expect(await rejection(store.getCheckpoint('x'.repeat(1001)))).toBeInstanceOf(StoreError)
      const huge = testCheckpoint('1:2', { state: { text: 'x'.repeat(17 << 20) } })
      const effects = { inboundId: 'm1', checkpoint: huge, expectedRevision: '1:1' }
      const error = await rejection(store.commitState('big', 1, '1#1', effects))
      expect(error).toBeInstanceOf(StoreError)
      expect(error).toMatchObject({ retryable: false, details: { operation: 'commitState', key: 'big' } })
      expect(String(error)).toMatch(/"big".*16 MB/)
      // Each fits into a command, both together not into the document.
      const initial = { text: 'x'.repeat(9 << 20) }
      const marker = { v: 1, name: 'x', kind: 'async', reason: 'async', initial } as const
      await store.commitState('big', 1, '1#0', { marker })
      const half = testCheckpoint('1:2', { state: initial })
      const both = await rejection(store.setCheckpointIf('big', half, '1:1', 1))
      expect(String(both)).toMatch(/"big".*16 MB/)
      await store.commitState('big', 1, '1#3', { marker: null })
      expect(await store.isCommitted('big', 'm1')).toBe(false)
      const small = { inboundId: 'm1', checkpoint: testCheckpoint('1:3'), expectedRevision: '1:1' }
      expect(await store.commitState('big', 1, '1#2', small)).toMatchObject({ outcome: 'committed' })
    }),
  )
})

describe('scenario 29: values that cannot be read', () => {
  it(
    'are reported once, kept aside, and block nobody',
    on(async (bed) => {
      const store = bed.store()
      const marker = { v: 1, name: 'x', kind: 'async', reason: 'async' } as const
      const outbox = [intent('s1'), intent('s2')]
      await store.commitState('k', 10, 't#1', { checkpoint: testCheckpoint('10:1'), marker, outbox })
      await store.journal.record('k', testMessage('m1'))
      await store.journal.record('k', testMessage('m2'))
      await store.setUserIf('u', { name: 'Ana' }, null)
      const damage = { checkpoint: '{"v":7}', marker: 42, 'outbox.0.content': '[]' }
      await bed.collection('chats').updateOne({ _id: 'k' }, { $set: damage })
      await bed.collection('chats').updateOne({ _id: 'k' }, { $set: { marker: 'not json' } })
      await bed.collection('bodies').updateOne({ _id: 'k~/m1' }, { $set: { message: '{' } })
      await bed.collection('users').updateOne({ _id: 'u' }, { $set: { data: '42' } })
      const state = await store.openState('k', 20, { journal: true })
      expect(state).toMatchObject({
        checkpoint: null,
        marker: null,
        revision: '10:1',
        outbox: [{ key: 's2' }],
      })
      expect(state?.damaged?.map(({ what, key }) => `${what} ${key}`).sort()).toEqual([
        ...['checkpoint k', 'marker k', 'outbox k s1', 'record k m1'],
      ])
      for (const what of ['checkpoint', 'marker'] as const) {
        expect(await store.setAside('k', what)).toBe(`collection ${bed.prefix}_damaged`)
        expect(await store.setAside('k', what)).toBe('nothing: it can be read')
      }
      expect(await store.journal.fail('k', 'm1', 20, 'unreadable', null)).toBe(true)
      const after = await store.openState('k', 20, { journal: true })
      expect(after).toMatchObject({ checkpoint: null, revision: '10:1', record: { id: 'm2' } })
      expect(after?.damaged).toBeUndefined()
      expect(await store.getUser('u')).toBeNull()
      expect(await store.setUserIf('u', { name: 'Eva' }, null)).not.toBeNull()
      const [letter] = await store.journal.deadLetters(10)
      expect(letter).toMatchObject({ key: 'k', record: { id: 'm1', message: { body: '' } } })
      expect(letter?.damaged).toBeDefined()
      expect(await store.journal.discard('k', 'm1')).toBe(true)
      const kept = await bed.collection('damaged').find().toArray()
      expect(kept.map(({ what }) => String(what)).sort()).toEqual([
        ...['checkpoint', 'marker', 'outbox', 'user'],
      ])
      // The chat goes on from the revision that its document had.
      const next = { checkpoint: testCheckpoint('20:1'), expectedRevision: '10:1' }
      expect(await store.commitState('k', 20, 't#2', next)).toMatchObject({ outcome: 'committed' })
    }),
  )

  it(
    'a message that is gone does not block its chat: the next one is the oldest',
    on(async (bed) => {
      const store = bed.store()
      await store.journal.record('k', testMessage('m1'))
      await store.journal.record('k', testMessage('m2'))
      await bed.collection('bodies').deleteOne({ _id: 'k~/m1' })
      expect((await store.journal.oldest('k'))?.id).toBe('m2')
      expect(await store.journal.record('k', testMessage('m1'))).toBe('duplicate')
    }),
  )
})

describe('many at once', () => {
  it(
    'I5, Z4: many holders of rising fences on few chats: no write of a lower fence lands after a higher one has read, and each commit is whole',
    on(async (bed) => {
      const stores = [bed.store(), bed.store(), bed.store()]
      const opened = new Map<string, number>()
      const accepted: string[] = []
      let late = 0
      const hold = async (fence: number): Promise<void> => {
        const store = stores[fence % stores.length] as MongoStore
        const key = `chat${fence % 3}`
        const state = await store.openState(key, fence)
        if (!state) return
        opened.set(key, Math.max(opened.get(key) ?? 0, fence))
        let expectedRevision = state.revision
        for (let n = 1; n <= 4; n += 1) {
          const known = opened.get(key) ?? 0
          const revision = `${fence}:${n}`
          const checkpoint = testCheckpoint(revision)
          const effects = { inboundId: revision, checkpoint, expectedRevision, outbox: [intent(revision)] }
          const result = await store.commitState(key, fence, `${fence}#${n}`, effects)
          if (result.outcome === 'refused') return
          if (known > fence) late += 1
          accepted.push(`${key} ${revision}`)
          expectedRevision = revision
        }
      }
      await Promise.all(Array.from({ length: 45 }, (_, n) => hold(n + 1)))
      expect(late).toBe(0)
      const written = await Promise.all(
        ['chat0', 'chat1', 'chat2'].map(async (key) =>
          ((await stores[0]?.outbox.entries(key)) ?? []).map((entry) => `${key} ${entry.key}`),
        ),
      )
      expect(written.flat().sort()).toEqual(accepted.sort())
    }),
  )

  it(
    'D1: of many that record one id at once exactly one is told that it was new',
    on(async (bed) => {
      const [one, other] = [bed.store(), bed.store()]
      const all = Array.from({ length: 20 }, (_, n) =>
        (n % 2 ? one : other).journal.record('k', testMessage('m')),
      )
      expect((await Promise.all(all)).filter((answer) => answer === 'recorded').length).toBe(1)
      await one.commitState('k', 1, '1#1', { ack: ['m'] })
      expect(await other.journal.oldest('k')).toBeNull()
    }),
  )

  it(
    'scenario 7: a flood in one chat keeps its order, and its messages do not make the chat’s document large',
    on(async (bed) => {
      const store = bed.store()
      const count = 300
      for (let n = 0; n < count; n += 1) {
        await store.journal.record('k', { ...testMessage(`m${n}`), body: 'x'.repeat(1000) })
      }
      const document = await bed.collection('chats').findOne({ _id: 'k' })
      expect(JSON.stringify(document).length).toBeLessThan(count * 100)
      for (let n = 0; n < count; n += 100) {
        const first = await store.openState('k', 1, { journal: true })
        expect(first?.record?.id).toBe(`m${n}`)
        const ack = Array.from({ length: 100 }, (_, more) => `m${n + more}`)
        const { more } = (await store.commitState('k', 1, `1#${n}`, { ack })) as { more?: boolean }
        expect(more).toBe(n + 100 < count)
      }
    }),
  )
})

describe('the journal', () => {
  it(
    'D3: a letter that is put back takes its old place in the line; the oldest letters come first',
    on(async (bed) => {
      const store = bed.store()
      for (const id of ['m1', 'm2', 'm3']) await store.journal.record('k', testMessage(id))
      for (const id of ['m2', 'm1']) await store.journal.fail('k', id, 1, 'poison', null)
      await store.journal.record('other', testMessage('m9'))
      await bed.pass(5)
      await store.journal.fail('other', 'm9', 1, 'poison', null)
      const ids = async (limit: number) =>
        (await store.journal.deadLetters(limit)).map(({ key, record }) => `${key} ${record.id}`)
      expect(await ids(10)).toEqual(['k m2', 'k m1', 'other m9'])
      expect(await ids(1)).toEqual(['k m2'])
      expect(await store.journal.retry('k', 'm2')).toBe(true)
      expect((await store.journal.oldest('k'))?.id).toBe('m2')
      expect(await store.journal.retry('k', 'm1')).toBe(true)
      expect((await store.journal.oldest('k'))?.id).toBe('m1')
    }),
  )

  it(
    'D1: chats named long ago are named first, so that a limit hides none',
    on(async (bed) => {
      const store = bed.store()
      for (const key of ['a', 'b', 'c']) await store.journal.record(key, testMessage('m1'))
      const named = new Set<string>()
      for (let n = 0; n < 3; n += 1) {
        await bed.pass(3)
        for (const key of await store.journal.stranded(0, 1)) named.add(key)
      }
      expect([...named].sort()).toEqual(['a', 'b', 'c'])
    }),
  )

  it(
    'Z3, H7: acknowledged ids and messages go after dedupeMs; what a kept answer, the line or a letter needs stays',
    on(async (bed) => {
      const clock: Clock & { aheadMs: number } = {
        aheadMs: 0,
        now: () => systemClock.now(),
        monotonic: () => systemClock.monotonic() + clock.aheadMs,
        setTimeout: (fn, ms, options) => systemClock.setTimeout(fn, ms, options),
      }
      const store = bed.store({ dedupeMs: 2000, clock })
      for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) await store.journal.record('k', testMessage(id))
      const held = [{ recordId: 'm3', message: testMessage('m3') }]
      const checkpoint = testCheckpoint('10:1', { answer: { recordId: 'm2' }, held })
      const effects = { inboundId: 'm1', ack: ['m1', 'm2', 'm3'], checkpoint, expectedRevision: null }
      await store.commitState('k', 10, 't#1', effects)
      await store.journal.fail('k', 'm4', 10, 'poison', null)
      expect(await store.journal.record('k', testMessage('m1'))).toBe('duplicate')
      await bed.pass(2100)
      expect(await store.isCommitted('k', 'm1')).toBe(false)
      clock.aheadMs = 600_000
      await store.commitState('other', 10, 't#2', {})
      await store.close()
      const left = await bed.collection('bodies').find().toArray()
      expect(left.map(({ id }) => String(id)).sort()).toEqual(['m2', 'm4', 'm5'])
      expect((await store.journal.find('k', 'm2'))?.message.body).toBe(testMessage('m2').body)
      expect(await store.journal.record('k', testMessage('m1'))).toBe('recorded')
    }),
  )

  it(
    'Z3: committed ids of one chat are bounded, the newest stay',
    on(async (bed) => {
      const store = bed.store()
      await store.commitState('k', 1, 'first', { inboundId: 'first' })
      const ids = Array.from({ length: 650 }, (_, n) => ({ i: `old${n}`, until: 9_000_000_000_000 }))
      await bed.collection('chats').updateOne({ _id: 'k' }, { $set: { ids } })
      await store.commitState('k', 1, 'last', { inboundId: 'last' })
      const document = await bed.collection('chats').findOne({ _id: 'k' })
      expect(document?.['ids']).toHaveLength(500)
      expect(await store.isCommitted('k', 'last')).toBe(true)
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
})
