/**
 * Rows of a session among a store's checkpoints, under keys that no chat can have: a provider's id has a colon, and
 * `session` has none (as durable tasks do it). Written compare-and-set with the leadership's fence, so that every
 * store that keeps checkpoints keeps sessions, and a former leader is refused (K2, I4).
 */
import { randomUUID } from 'node:crypto'
import {
  ConfigError,
  LeaseLostError,
  StoreError,
  type FlowCheckpoint,
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

/** How often a write is tried that a former leader's has overtaken: it has a few under way, then it is refused. */
export const ATTEMPTS = 20

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

  /** @param fence absent: without coordination, written unconditionally. */
  constructor(
    private readonly store: SessionStore,
    private readonly session: string,
    private readonly fence: number | undefined,
  ) {
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

  /** Writes whatever was there. @throws LeaseLostError if a later leader has. */
  async overwrite(name: string, state: object): Promise<void> {
    const revision = this.newRevision()
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const found = await this.readOrDamaged(name)
      const expected = found === null || found === 'damaged' ? null : found.revision
      if (await this.put(name, state, expected, revision)) return
    }
    throw this.lost()
  }

  lost(): LeaseLostError {
    const fence = this.fence === undefined ? {} : { fence: this.fence }
    return new LeaseLostError(`provider:baileys:${this.session}`, 'superseded', fence)
  }

  private key(name: string): string {
    return `${this.prefix}/${name}`
  }
}
