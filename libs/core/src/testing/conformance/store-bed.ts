/** What a store's author provides so that the store suites can run on it. */
import type { FlowCheckpoint } from '../../contracts/checkpoint-store.js'
import type { Coordinator } from '../../contracts/coordinator.js'
import type { LockStore } from '../../contracts/lock-store.js'
import type { Message } from '../../contracts/message.js'
import type { OutboxEntry } from '../../contracts/outbox.js'
import type { StateStore } from '../../contracts/state-store.js'
import type { Store } from '../../contracts/store.js'
import type { CoordinatorOptions } from '../../runtime/session-coordinator.js'

/** What a store has. What it has not is stated here; nothing is skipped silently. */
export interface StoreGuarantees {
  /** `setCheckpointIf`, `clearCheckpointIf` (K2). */
  conditional: boolean
  /** `StateStore`: fenced commits (Z4). */
  state: boolean
  journal: boolean
  outbox: boolean
  log: boolean
  /** `LockStore` and `leases()` (S2). */
  locks: boolean
  /** `coordinator()` that shares this backend. */
  coordinator: boolean
  /** `Effects.wakeInMs` and what follows from it, with `state` and `journal` (ADR 8). Absent: not kept; timeouts of
   * waits live in memory only. */
  timers?: boolean
}

export type CompleteStore = Store & StateStore & LockStore

/** Of `inTime`: slower machines fail. */
const SLOWEST_MS = 8 * 300

export interface StoreBed {
  /** Another client of the same data, as another process would have it. The first one when called first. */
  store(): Store
  /** A coordinator over the same backend. */
  coordinator?(options?: CoordinatorOptions): Coordinator
  /** Lets time pass, also for the store's clock. */
  pass(ms: number): Promise<void>
  /** Waits for `promise` while time passes. */
  until<T>(promise: Promise<T>): Promise<T>
  close(): Promise<void>
}

export interface StoreFixture {
  name: string
  guarantees: StoreGuarantees
  /** Empty, and of its own for each test. */
  bed(): Promise<StoreBed>
}

export function onStore(
  fixture: StoreFixture,
  test: (store: CompleteStore, bed: StoreBed) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const bed = await fixture.bed()
    try {
      // What the guarantees deny is not called by the tests that run.
      const store = bed.store() as CompleteStore
      await store.open?.()
      await test(store, bed)
    } finally {
      await bed.close()
    }
  }
}

export function checkpoint(revision: string, more: Partial<FlowCheckpoint> = {}): FlowCheckpoint {
  return {
    v: 1,
    name: 'order',
    kind: 'flow',
    step: 'size',
    visit: 1,
    state: { size: 'M', nested: { list: [1, 'dos', null, true] } },
    fingerprint: 'f1',
    ...more,
    revision,
  }
}

export function message(id: string, more: Partial<Message> = {}): Message {
  return {
    id,
    chatId: '100',
    from: '100',
    type: 'text',
    body: `¿Qué tal ${id}? 👋`,
    isGroup: false,
    timestamp: 1_700_000_000_000,
    ...more,
  }
}

export function intent(key: string, more: Partial<OutboxEntry> = {}): OutboxEntry {
  return { v: 1, key, hash: `h-${key}`, content: { text: 'Hola' }, status: 'intended', ...more }
}

/**
 * Plays what must not take longer than a time; again with twice of it while this machine is too slow for it.
 * @param play gets the time and a wait for two thirds of it, and returns what it saw; it must be repeatable.
 */
export async function inTime<T>(
  bed: StoreBed,
  firstMs: number,
  play: (ms: number, wait: () => Promise<void>) => Promise<T>,
): Promise<T> {
  for (let ms = firstMs; ; ms *= 2) {
    const partMs = (ms * 2) / 3
    let waitedMs = 0
    const began = performance.now()
    const seen = await play(ms, async () => {
      waitedMs += partMs
      await bed.pass(partMs)
    })
    // Then no two thirds have become a whole.
    const intime = performance.now() - began - waitedMs < ms / 3
    if (intime || ms >= SLOWEST_MS) return seen
  }
}
