/**
 * Rows of a session among a store's checkpoints, under keys that no chat can have: a provider's id has a colon, and
 * `session` has none (as durable tasks do it). Written compare-and-set with the leadership's fence, so that every
 * store that keeps checkpoints keeps sessions, and a former leader is refused (K2, I4).
 */
import { randomUUID } from 'node:crypto'
import {
  Backoff,
  ConfigError,
  LeaseLostError,
  StoreError,
  systemClock,
  systemRandom,
  type Clock,
  type FlowCheckpoint,
  type Random,
  type StateStore,
  type Store,
} from '@botmesh/core'

/** What of a store is used. */
export type SessionStore = Pick<Store, 'kind' | 'getCheckpoint' | 'setCheckpoint'> &
  Partial<Pick<Store, 'setCheckpointIf' | 'setAside' | 'open' | 'close' | 'isOpen'>> &
  Partial<Pick<StateStore, 'openState'>>

export interface FoundRow {
  state: unknown
  revision: string | null
}

/** For tests. */
export interface SessionTime {
  clock?: Clock
  random?: Random
}

/**
 * How long a write is repeated that others' get in between of. That happens only until the store refuses the former
 * leader: in one that raises the fence apart from a write at the next attempt, else with the first write that is in.
 */
const CONTEST_MS = 15_000
const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 100

/** @throws ConfigError for a store whose writes cannot be fenced. */
export function requireFences(store: SessionStore): void {
  if (typeof store.setCheckpointIf === 'function') return
  throw new ConfigError(
    `The ${store.kind} store cannot keep a WhatsApp session: it has no setCheckpointIf, so a former leader could overwrite the keys of the present one.`,
    { option: 'store', accepted: 'a store with setCheckpointIf, or `folder`' },
  )
}

export class SessionRows {
  private readonly prefix: string
  private readonly clock: Clock
  private readonly random: Random

  /** @param fence absent: without coordination, written unconditionally. */
  constructor(
    private readonly store: SessionStore,
    private readonly session: string,
    private readonly fence: number | undefined,
    { clock = systemClock, random = systemRandom }: SessionTime = {},
  ) {
    this.clock = clock
    this.random = random
    this.prefix = `session/baileys/${encodeURIComponent(session)}`
  }

  /**
   * From now on the store refuses the writes of lower fences to this row, however fast they come. A store that cannot
   * do that apart from a write leaves it to the first one. @throws LeaseLostError if a later leader has done so.
   */
  async claim(name: string): Promise<void> {
    if (this.fence === undefined || this.store.openState === undefined) return
    if ((await this.store.openState(this.key(name), this.fence)) === null) throw this.lost()
  }

  /** @param name `head`, or a page and its slot. @throws StoreError */
  async read(name: string): Promise<FoundRow | null> {
    const found = await this.store.getCheckpoint(this.key(name))
    return found === null ? null : { state: found.state, revision: found.revision }
  }

  /** As `read`; what cannot be read is set aside, and counts as nothing. @returns `damaged` then. */
  async readOrDamaged(name: string): Promise<FoundRow | null | 'damaged'> {
    try {
      return await this.read(name)
    } catch (error) {
      if (!(error instanceof StoreError) || error.retryable) throw error
      await this.store.setAside?.(this.key(name), 'checkpoint')
      return 'damaged'
    }
  }

  /** A revision for a write that may have to be repeated as it is. */
  newRevision(): string {
    return `${this.fence ?? 0}:session-${randomUUID()}`
  }

  /** Idempotent by `revision`. @returns false if somebody else has written, or leads by now. */
  async put(name: string, state: object, expected: string | null, revision: string): Promise<boolean> {
    const checkpoint: FlowCheckpoint = {
      v: 1,
      name: this.key(name),
      kind: 'async',
      visit: 0,
      state: { ...state },
      fingerprint: 'session',
      revision,
    }
    if (this.fence === undefined) {
      await this.store.setCheckpoint(this.key(name), checkpoint)
      return true
    }
    // Checked at construction.
    return this.store.setCheckpointIf!(this.key(name), checkpoint, expected, this.fence)
  }

  /** Writes whatever was there. @throws as `replace`. */
  async overwrite(name: string, state: object): Promise<void> {
    const read = async () => {
      const found = await this.readOrDamaged(name)
      return found === 'damaged' ? null : found
    }
    await this.replace(name, read, () => state)
  }

  /**
   * Reads a row and writes it anew; again if somebody else wrote in between. Only a later leader's mark makes that a
   * lost leadership: a former one may write as fast as it likes.
   * @throws LeaseLostError if a later leader has claimed or written the row. StoreError if others get in between for
   *   longer than anybody should.
   */
  async replace<S extends object>(
    name: string,
    read: () => Promise<FoundRow | null>,
    stateOver: (found: FoundRow | null) => S,
  ): Promise<{ found: FoundRow | null; state: S; revision: string }> {
    const revision = this.newRevision()
    const until = this.clock.monotonic() + CONTEST_MS
    const pause = new Backoff(this.random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
    for (;;) {
      const found = await read()
      if (this.fence !== undefined && fenceOf(found) > this.fence) throw this.lost()
      const state = stateOver(found)
      if (await this.put(name, state, found?.revision ?? null, revision)) return { found, state, revision }
      await this.claim(name)
      if (this.clock.monotonic() >= until) throw this.contested(name)
      await pause.wait(this.clock)
    }
  }

  lost(): LeaseLostError {
    const fence = this.fence === undefined ? {} : { fence: this.fence }
    return new LeaseLostError(`provider:baileys:${this.session}`, 'superseded', fence)
  }

  private contested(name: string): StoreError {
    return new StoreError(
      `The WhatsApp session "${this.session}" could not be written: others write row "${name}" all the time. Look for a process that writes it without being the leader.`,
      { store: this.store.kind, operation: 'setCheckpointIf', key: this.key(name) },
      { retryable: true },
    )
  }

  private key(name: string): string {
    return `${this.prefix}/${name}`
  }
}

/** Of whoever wrote the row, as `newRevision` marks it. */
function fenceOf(found: FoundRow | null): number {
  return Number.parseInt(found?.revision ?? '0', 10)
}
