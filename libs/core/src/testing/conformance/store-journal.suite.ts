/** Conformance of the journal and the outbox (D1–D3, I9, I12). */
import type { Journal } from '../../contracts/journal.js'
import type { Outbox } from '../../contracts/outbox.js'
import type { Store } from '../../contracts/store.js'
import { intent, message, onStore, type StoreFixture } from './store-bed.js'
import type { TestApi } from './test-api.js'

function journalOf(store: Store): Journal {
  if (!store.journal) throw new Error('The guarantees promise a journal.')
  return store.journal
}

function outboxOf(store: Store): Outbox {
  if (!store.outbox) throw new Error('The guarantees promise an outbox.')
  return store.outbox
}

export function journalSuite(api: TestApi, fixture: StoreFixture): void {
  if (fixture.guarantees.journal) api.describe('journal', () => journalTests(api, fixture))
  if (fixture.guarantees.outbox && fixture.guarantees.state)
    api.describe('outbox', () => outboxTests(api, fixture))
}

function journalTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'D1: records each id once, oldest first, without the transport’s own object',
    onStore(fixture, async (store, bed) => {
      const journal = journalOf(store)
      expect(await journal.record('k', message('m1', { raw: { huge: true } }))).toBe('recorded')
      expect(await journal.record('k', message('m2'))).toBe('recorded')
      expect(await journalOf(bed.store()).record('k', message('m1'))).toBe('duplicate')
      expect(await journal.record('other', message('m1'))).toBe('recorded')
      const oldest = await journal.oldest('k')
      expect(oldest).toMatchObject({ v: 1, id: 'm1', attempts: 0, message: message('m1') })
      expect(oldest?.message.raw).toBeUndefined()
      const second = await journal.find('k', 'm2')
      expect(second?.seq).toBeGreaterThan(oldest?.seq ?? Infinity)
      expect(await journal.find('k', 'm3')).toBeNull()
      expect(await journal.oldest('nobody')).toBeNull()
    }),
  )

  it(
    'D1, H8: an acknowledgement is part of a commit; the id stays a duplicate and the record can be found',
    onStore(fixture, async (store) => {
      const journal = journalOf(store)
      await journal.record('k', message('m1'))
      await journal.record('k', message('m2'))
      const first = await store.commitState('k', 10, 't1#1', { inboundId: 'm1', ack: ['m1'] })
      expect(first).toMatchObject({ outcome: 'committed', more: true })
      expect((await journal.oldest('k'))?.id).toBe('m2')
      expect(await journal.record('k', message('m1'))).toBe('duplicate')
      expect((await journal.find('k', 'm1'))?.message.body).toBe(message('m1').body)
      const last = await store.commitState('k', 10, 't1#2', { ack: ['m2'] })
      expect(last).toMatchObject({ outcome: 'committed', more: false })
      expect(await journal.oldest('k')).toBeNull()
    }),
  )

  it(
    'I12: a refused commit acknowledges nothing',
    onStore(fixture, async (store) => {
      const journal = journalOf(store)
      await journal.record('k', message('m1'))
      await store.openState('k', 20)
      expect(await store.commitState('k', 10, 't1#1', { ack: ['m1'] })).toMatchObject({ outcome: 'refused' })
      expect((await journal.oldest('k'))?.id).toBe('m1')
    }),
  )

  it(
    'openState brings the oldest record and the sends known for the chat',
    onStore(fixture, async (store) => {
      await journalOf(store).record('k', message('m1'))
      await store.commitState('k', 10, 't1#1', { outbox: [intent('r:m1/size/1/0')] })
      const state = await store.openState('k', 20, { journal: true })
      expect(state?.record?.id).toBe('m1')
      expect(state?.outbox?.map((entry) => entry.key)).toEqual(['r:m1/size/1/0'])
      expect((await store.openState('k', 20))?.record).toBeUndefined()
    }),
  )

  it(
    'T6, D3: a failed attempt is counted and backs off under its fence; the record stays the oldest',
    onStore(fixture, async (store, bed) => {
      const journal = journalOf(store)
      await journal.record('k', message('m1'))
      await journal.record('k', message('m2'))
      expect(await journal.fail('k', 'm1', 10, 'boom', 1000)).toBe(true)
      const failed = await journal.oldest('k')
      expect(failed).toMatchObject({ id: 'm1', attempts: 1, lastError: 'boom' })
      expect(failed?.waitMs).toBeGreaterThan(0)
      await bed.pass(1050)
      expect((await journal.oldest('k'))?.waitMs ?? 0).toBe(0)
      await store.openState('k', 30)
      expect(await journal.fail('k', 'm1', 20, 'late', 200)).toBe(false)
      expect((await journal.oldest('k'))?.attempts).toBe(1)
    }),
  )

  it(
    'D3: dead letters step aside, can be listed, retried and discarded',
    onStore(fixture, async (store) => {
      const journal = journalOf(store)
      await journal.record('k', message('m1'))
      await journal.record('k', message('m2'))
      await journal.fail('k', 'm1', 10, 'poison', null)
      expect((await journal.oldest('k'))?.id).toBe('m2')
      expect(await journal.record('k', message('m1'))).toBe('duplicate')
      const [letter, ...rest] = await journal.deadLetters(10)
      expect(rest).toEqual([])
      expect(letter).toMatchObject({ key: 'k', record: { id: 'm1', lastError: 'poison', attempts: 1 } })
      expect(letter?.at).toBeGreaterThan(0)
      expect(await journal.retry('k', 'm1')).toBe(true)
      expect(await journal.retry('k', 'm1')).toBe(false)
      expect(await journal.oldest('k')).toMatchObject({ id: 'm1', attempts: 0 })
      await journal.fail('k', 'm1', 10, 'again', null)
      expect(await journal.discard('k', 'm1')).toBe(true)
      expect(await journal.discard('k', 'm1')).toBe(false)
      expect(await journal.deadLetters(10)).toEqual([])
      expect(await journal.record('k', message('m1'))).toBe('duplicate')
    }),
  )

  it(
    'D1: chats with work that nobody takes up are found, those without are not',
    onStore(fixture, async (store, bed) => {
      const journal = journalOf(store)
      await journal.record('stranded', message('m1'))
      await journal.record('done', message('m1'))
      await store.commitState('done', 10, 't1#1', { ack: ['m1'] })
      await journal.record('later', message('m1'))
      await journal.fail('later', 'm1', 10, 'boom', 60_000)
      expect(await journal.stranded(60_000, 10)).toEqual([])
      await bed.pass(150)
      expect(await journal.stranded(100, 10)).toEqual(['stranded'])
      expect(await journal.stranded(100, 0)).toEqual([])
    }),
  )

  it(
    'D1: what one bot left stranded does not hide that of another one in the same store',
    onStore(fixture, async (store, bed) => {
      const journal = journalOf(store)
      for (const chat of ['1', '2', '3', '4', '5']) await journal.record(`line%3Aa/${chat}`, message('m1'))
      await journal.record('line%3Ab/1', message('m1'))
      await journal.record('line%3Aab/1', message('m1'))
      await bed.pass(150)
      expect(await journal.stranded(100, 2, 'line%3Ab/')).toEqual(['line%3Ab/1'])
      expect(await journal.stranded(100, 2, 'line%3Ac/')).toEqual([])
      expect((await journal.stranded(100, 10, 'line%3Aa/')).length).toBe(5)
      expect((await journal.stranded(100, 10)).length).toBe(7)
    }),
  )
}

function outboxTests({ it, expect }: TestApi, fixture: StoreFixture): void {
  it(
    'D2: intents are written with a commit, settled, and "sent" is a fact that nothing undoes',
    onStore(fixture, async (store) => {
      const outbox = outboxOf(store)
      const entries = ['a', 'b', 'c'].map((key) => intent(key))
      await store.commitState('k', 10, 't1#1', { outbox: entries })
      expect((await outbox.entries('k')).map((entry) => entry.status)).toEqual([
        'intended',
        'intended',
        'intended',
      ])
      await outbox.settle('k', 'a', { status: 'uncertain', error: 'timeout' })
      await outbox.settle('k', 'b', { status: 'failed', error: 'refused' })
      await outbox.settle('k', 'a', { status: 'sent', sent: { id: 'p1' } })
      await outbox.settle('k', 'a', { status: 'failed', error: 'late' })
      const known = new Map((await outbox.entries('k')).map((entry) => [entry.key, entry]))
      expect(known.get('a')).toMatchObject({ status: 'sent', sent: { id: 'p1' } })
      expect(known.get('b')).toMatchObject({ status: 'failed', error: 'refused' })
      expect(known.get('c')).toMatchObject({ status: 'intended' })
      expect(await outbox.entries('other')).toEqual([])
    }),
  )

  it(
    'D2: an older view of the same content does not undo "sent"; other content is a new send',
    onStore(fixture, async (store) => {
      const outbox = outboxOf(store)
      await store.commitState('k', 10, 't1#1', { outbox: [intent('a')] })
      await outbox.settle('k', 'a', { status: 'sent', sent: { id: 'p1' } })
      await store.commitState('k', 10, 't1#2', { outbox: [intent('a')] })
      expect((await outbox.entries('k'))[0]).toMatchObject({ status: 'sent', sent: { id: 'p1' } })
      await store.commitState('k', 10, 't1#3', { outbox: [intent('a', { hash: 'other' })] })
      expect((await outbox.entries('k'))[0]).toMatchObject({ status: 'intended', hash: 'other' })
    }),
  )

  it(
    'D2: what is served is forgotten; settling it later is no error; lower fences write no intents',
    onStore(fixture, async (store) => {
      const outbox = outboxOf(store)
      await store.commitState('k', 10, 't1#1', { outbox: [intent('a'), intent('b')] })
      await store.commitState('k', 10, 't1#2', { forget: ['a'] })
      await outbox.settle('k', 'a', { status: 'sent', sent: { id: 'p1' } })
      expect((await outbox.entries('k')).map((entry) => entry.key)).toEqual(['b'])
      await store.openState('k', 30)
      await store.commitState('k', 20, 't2#1', { outbox: [intent('c')] })
      expect((await outbox.entries('k')).map((entry) => entry.key)).toEqual(['b'])
    }),
  )
}
