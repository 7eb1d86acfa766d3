/**
 * A store whose connections are cut in the middle of calls, and whose server is killed and started again: what was
 * answered is there, nothing is there twice, errors are typed and retryable, and no new store is needed (S1).
 */
import { StoreError, type BotmeshError } from '../../contracts/errors.js'
import type { Duration } from '../../contracts/coordinator.js'
import { chainOfCommits, testCheckpoint, testMessage } from './chain.js'
import type { CompleteStore } from './store-bed.js'
import type { TestApi } from './test-api.js'

/** A line to the server that goes wrong on command. */
export interface CutLine {
  reset(): void
  cut(): void
  heal(): void
  blackhole(direction?: 'to-client' | 'to-server' | 'both'): void
}

export interface CutFixture {
  name: string
  bed(): Promise<{
    /** Through the line. */
    store(options?: { startTimeoutMs?: Duration }): CompleteStore
    /** Straight. */
    witness(): CompleteStore
    line: CutLine
    /** Kills the server and starts it again, its data kept. */
    restart(): Promise<void>
    pass(ms: number): Promise<void>
    close(): Promise<void>
  }>
}

type Bed = Awaited<ReturnType<CutFixture['bed']>>

export function cutSuite({ describe, it, expect }: TestApi, fixture: CutFixture): void {
  const on = (test: (bed: Bed) => Promise<void>) => async () => {
    const bed = await fixture.bed()
    try {
      await test(bed)
    } finally {
      bed.line.heal()
      await bed.close()
    }
  }
  const exact = async (bed: Bed, chats: string[], count: number): Promise<void> => {
    const witness = bed.witness()
    for (const key of chats) {
      expect((await witness.getCheckpoint(key))?.revision).toBe(`7:${count}`)
      expect((await witness.outbox?.entries(key))?.length).toBe(count)
      expect(await witness.isCommitted(key, `m${count}`)).toBe(true)
    }
  }
  describe(`${fixture.name}: faults`, () => {
    it(
      'S1: connections reset at any moment: every commit lands once',
      on(async (bed) => {
        const store = bed.store()
        await store.open?.()
        const chats = ['a', 'b', 'c', 'd']
        let over = false
        const resets = (async () => {
          for (let n = 0; !over && n < 60; n += 1) {
            await bed.pass(7 + (n % 5) * 6)
            bed.line.reset()
          }
        })()
        const chains = await Promise.all(chats.map((key) => chainOfCommits(store, key, 7, 60)))
        over = true
        await resets
        for (const { revisions, errors } of chains) {
          expect(revisions.length).toBe(60)
          expect(errors.every((error) => error instanceof StoreError)).toBe(true)
        }
        await exact(bed, chats, 60)
      }),
    )

    it(
      'S1: a reply that was lost with its connection is answered by the receipt, not by "refused"',
      on(async (bed) => {
        const store = bed.store()
        await store.openState('k', 7)
        bed.line.blackhole('to-client')
        const commit = store.commitState('k', 7, '7#1', {
          ...{ inboundId: 'm1', checkpoint: testCheckpoint('7:1'), expectedRevision: null },
        })
        // Depending on the trips a commit takes, it hangs before or after it was stored: both must end well.
        await bed.pass(50)
        bed.line.reset()
        bed.line.heal()
        expect(await commit).toMatchObject({ outcome: 'committed', revision: '7:1' })
        expect(await store.journal?.record('k', testMessage('m1'))).toBe('duplicate')
      }),
    )

    it(
      'S1: while the server is away calls fail with a retryable error, afterwards they work',
      on(async (bed) => {
        const store = bed.store()
        await store.setCheckpoint('k', testCheckpoint('1:1'))
        bed.line.cut()
        const error = await store.getCheckpoint('k').then(
          () => undefined,
          (reason: unknown) => reason,
        )
        expect(error instanceof StoreError).toBe(true)
        expect((error as BotmeshError).retryable).toBe(true)
        bed.line.heal()
        expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
      }),
    )

    it(
      'S1: the server is killed and restarted in the middle of traffic: nothing answered is lost, nothing is there twice',
      on(async (bed) => {
        const store = bed.store()
        await store.open?.()
        const chats = ['a', 'b', 'c']
        let restarted: Promise<void> | undefined
        const chains = await Promise.all(
          chats.map((key) =>
            chainOfCommits(store, key, 7, 25, async (n) => {
              if (n >= 8) restarted ??= bed.restart()
              await bed.pass(5)
            }),
          ),
        )
        await restarted
        for (const { revisions } of chains) expect(revisions.length).toBe(25)
        await exact(bed, chats, 25)
      }),
    )

    it(
      'a server that answers nothing does not hang a call for ever, nor those after it',
      on(async (bed) => {
        const store = bed.store({ startTimeoutMs: 5000 })
        await store.setCheckpoint('k', testCheckpoint('1:1'))
        bed.line.blackhole()
        const error = await store.acquireLockFenced('job', 1000).then(
          () => undefined,
          (reason: unknown) => reason,
        )
        expect(error instanceof StoreError).toBe(true)
        bed.line.reset()
        bed.line.heal()
        expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
      }),
    )

    it(
      'S1: a server that answers nothing does not hold up a close while the store opens; later it opens again',
      on(async (bed) => {
        const store = bed.store({ startTimeoutMs: 60_000 })
        bed.line.blackhole()
        const opened = Promise.resolve(store.open?.()).then(
          () => undefined,
          (reason: unknown) => reason,
        )
        await bed.pass(50)
        const began = performance.now()
        await store.close?.()
        expect(performance.now() - began).toBeLessThan(5000)
        expect((await opened) instanceof StoreError).toBe(true)
        bed.line.reset()
        bed.line.heal()
        await store.setCheckpoint('k', testCheckpoint('1:1'))
        expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
      }),
    )
  })
}
