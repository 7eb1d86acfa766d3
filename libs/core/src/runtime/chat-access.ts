/**
 * How a turn reads and writes its chat: one face over the four ways in which turns and data can be placed.
 *
 *   shared     turns and data in one backend: effects and release are one atomic trip (Z4)
 *   separate   a StateStore elsewhere: the opening read raises the store's fence, every write requires it
 *   plain      a custom store with checkpoints only: compare-and-set if it can, else the local fence alone (K2)
 *   local      no coordination: plain writes, nothing fenced (B1)
 *
 * Invariants kept: no write of a lower fence lands after a higher one has read or written (all but the last two,
 * which say so at start); a commit in flight is never cut, but repeated with the same identity until answered.
 */
import type { CheckpointStore } from '../contracts/checkpoint-store.js'
import type { Clock } from '../contracts/clock.js'
import type { Turn } from '../contracts/coordinator.js'
import { BotmeshError, LeaseLostError } from '../contracts/errors.js'
import type {
  ChatState,
  CommitResult,
  Damage,
  Effects,
  ReadOptions,
  StateStore,
} from '../contracts/state-store.js'
import type { Store } from '../contracts/store.js'

export interface ChatAccess {
  readonly fence: number
  /** @throws LeaseLostError (`superseded`) if a later holder has opened this chat already. */
  open(read: ReadOptions): Promise<ChatState>
  /** True if an effect of this message is known to be committed; only asked where the ticket cannot tell (Z3). */
  isCommitted(inboundId: string): Promise<boolean>
  /** Stores and keeps the turn. */
  write(effects: Effects): Promise<CommitResult>
  /**
   * Stores and ends the turn.
   * @param landed told what became of it before anybody can be granted the chat next, as far as this side knows: the
   * next turn may be this replica's own, and must not find its copy of the conversation as it was before.
   */
  finish(effects: Effects, landed: (result: CommitResult) => void): Promise<void>
  /** Ends the turn; stores nothing. Never rejects for an unreachable backend (L3).
   * @param options.unused nothing was done under it, so whoever had the chat before is still its last holder (T7). */
  abandon(options?: { unused?: boolean }): Promise<void>
}

export class SharedAccess implements ChatAccess {
  readonly fence: number

  constructor(
    private readonly turn: Turn,
    private readonly store: Store & Partial<StateStore>,
  ) {
    this.fence = turn.fence
  }

  async open(read: ReadOptions): Promise<ChatState> {
    return openStateOf(this.store, this.turn, read)
  }

  isCommitted(): Promise<boolean> {
    return Promise.resolve(false) // The ticket itself answers `duplicate`.
  }

  write(effects: Effects): Promise<CommitResult> {
    return this.turn.commit(effects, { release: false })
  }

  async finish(effects: Effects, landed: (result: CommitResult) => void): Promise<void> {
    landed(await this.turn.commit(effects))
  }

  abandon(options?: { unused?: boolean }): Promise<void> {
    return this.turn.release(options)
  }
}

/** A turn that only this process knows: without coordination, but with a store that fences (durability). */
export type TurnLike = Pick<Turn, 'key' | 'fence' | 'assertHeld' | 'release'>

export class SeparateAccess implements ChatAccess {
  readonly fence: number
  private writes = 0

  constructor(
    private readonly turn: TurnLike,
    private readonly store: Store & StateStore,
    private readonly clock: Clock,
    private readonly retryMs: number,
  ) {
    this.fence = turn.fence
  }

  open(read: ReadOptions): Promise<ChatState> {
    return openStateOf(this.store, this.turn, read)
  }

  isCommitted(inboundId: string): Promise<boolean> {
    return this.store.isCommitted(this.turn.key, inboundId)
  }

  async write(effects: Effects): Promise<CommitResult> {
    const { key, fence } = this.turn
    const commitId = `${fence}:${this.writes++}`
    for (;;) {
      this.turn.assertHeld()
      try {
        return await this.store.commitState(key, fence, commitId, effects)
      } catch (error) {
        // The reply may be lost while the write landed: only the identical commit can tell.
        if (error instanceof BotmeshError && !error.retryable) throw error
        await pause(this.clock, this.retryMs)
      }
    }
  }

  async finish(effects: Effects, landed: (result: CommitResult) => void): Promise<void> {
    landed(await this.write(effects))
    await this.turn.release()
  }

  abandon(options?: { unused?: boolean }): Promise<void> {
    return this.turn.release(options)
  }
}

/** A store without `commitState`: only the checkpoint is kept, and nothing else of an effect. */
export class PlainAccess implements ChatAccess {
  readonly fence: number

  constructor(
    private readonly key: string,
    private readonly turn: TurnLike | null,
    private readonly store: CheckpointStore,
  ) {
    this.fence = turn?.fence ?? 0
  }

  async open(): Promise<ChatState> {
    try {
      const checkpoint = await this.store.getCheckpoint(this.key)
      return { checkpoint, marker: null, revision: checkpoint?.revision ?? null }
    } catch (error) {
      // An outage is the caller's; a value that cannot be read would otherwise stop its chat for ever.
      if (error instanceof BotmeshError) throw error
      const damage: Damage = { what: 'checkpoint', key: this.key, error: String(error) }
      return { checkpoint: null, marker: null, revision: null, damaged: [damage] }
    }
  }

  isCommitted(): Promise<boolean> {
    return Promise.resolve(false)
  }

  async write(effects: Effects): Promise<CommitResult> {
    const { checkpoint } = effects
    const expected = effects.expectedRevision ?? null
    if (checkpoint === undefined) return { outcome: 'committed', revision: expected }
    this.turn?.assertHeld()
    const stored = checkpoint === null ? await this.clear(expected) : await this.set(checkpoint, expected)
    if (!stored) return { outcome: 'refused', why: 'superseded' }
    return { outcome: 'committed', revision: checkpoint?.revision ?? null }
  }

  async finish(effects: Effects, landed: (result: CommitResult) => void): Promise<void> {
    landed(await this.write(effects))
    await this.turn?.release()
  }

  async abandon(options?: { unused?: boolean }): Promise<void> {
    await this.turn?.release(options)
  }

  private async set(checkpoint: NonNullable<Effects['checkpoint']>, expected: string | null) {
    if (this.turn !== null && this.store.setCheckpointIf !== undefined) {
      return this.store.setCheckpointIf(this.key, checkpoint, expected, this.fence)
    }
    await this.store.setCheckpoint(this.key, checkpoint)
    return true
  }

  private async clear(expected: string | null) {
    if (this.turn !== null && this.store.clearCheckpointIf !== undefined) {
      return this.store.clearCheckpointIf(this.key, expected, this.fence)
    }
    await this.store.clearCheckpoint(this.key)
    return true
  }
}

/** True if the store can take part in fenced commits. */
export function isStateStore(store: Store): store is Store & StateStore {
  return store.openState !== undefined && store.commitState !== undefined && store.arrive !== undefined
}

async function openStateOf(
  store: Store & Partial<StateStore>,
  turn: TurnLike,
  read: ReadOptions,
): Promise<ChatState> {
  const state = await store.openState?.(turn.key, turn.fence, read)
  if (state === undefined || state === null) throw new LeaseLostError(turn.key, 'superseded', turn)
  return state
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimeout(resolve, ms))
}
