/**
 * What a store remembers of a durable task: a row among the checkpoints, under a key that no chat can have, written
 * compare-and-set with the leader's fence (K2, I5). So every store that keeps checkpoints keeps tasks.
 *
 * A write is refused once a later leader has written: what a replica that was frozen thinks it has done does not count.
 */
import { z } from 'zod'
import type { CheckpointStore, FlowCheckpoint } from '../contracts/checkpoint-store.js'
import type { Random } from '../contracts/clock.js'
import { StoreError } from '../contracts/errors.js'
import type { StateStore } from '../contracts/state-store.js'
import type { TaskState } from './due.js'

export type TaskStore = Pick<CheckpointStore, 'getCheckpoint'> &
  Required<Pick<CheckpointStore, 'setCheckpointIf'>> &
  Pick<Partial<StateStore>, 'setAside'> & { readonly kind: string }

const stateSchema = z.object({
  plan: z.string(),
  settled: z.number(),
  claim: z.object({ occurrence: z.number(), attempt: z.number(), retryAt: z.number().optional() }).nullable(),
})

/** A provider's id has a colon, so its chats never begin like this. */
export function taskKey(scheduler: string, id: string): string {
  return `task/${encodeURIComponent(scheduler)}/${encodeURIComponent(id)}`
}

export class TaskRow {
  private revision: string | null = null
  private attempted: { json: string; revision: string } | null = null

  constructor(
    private readonly store: TaskStore,
    readonly key: string,
    private readonly random: Random,
    private readonly report: (error: unknown) => void,
  ) {}

  /** @returns null if nothing is known. What cannot be read is reported, and counts as nothing. */
  async load(): Promise<TaskState | null> {
    const checkpoint = await this.read()
    this.attempted = null
    this.revision = checkpoint?.revision ?? null
    if (checkpoint === null) return null
    const parsed = stateSchema.safeParse(checkpoint.state)
    if (!parsed.success) {
      this.report(this.unreadable(parsed.error, 'it is overwritten'))
      return null
    }
    const { plan, settled, claim } = parsed.data
    if (claim === null) return { plan, settled, claim }
    const { retryAt, ...begun } = claim
    return { plan, settled, claim: retryAt === undefined ? begun : { ...begun, retryAt } }
  }

  /**
   * Idempotent: the same state tried again after a lost reply is the same write.
   * @returns false if it is refused: somebody has written since `load`, or under a higher fence.
   */
  async save(state: TaskState, fence: number): Promise<boolean> {
    const json = JSON.stringify(state)
    if (this.attempted?.json !== json)
      this.attempted = { json, revision: `${fence}:task-${this.random.uuid()}` }
    const { revision } = this.attempted
    const checkpoint: FlowCheckpoint = {
      v: 1,
      name: this.key,
      kind: 'async',
      visit: 0,
      state: { ...state },
      fingerprint: 'task',
      revision,
    }
    const saved = await this.store.setCheckpointIf(this.key, checkpoint, this.revision, fence)
    if (saved) {
      this.revision = revision
      this.attempted = null
    }
    return saved
  }

  private async read(): Promise<FlowCheckpoint | null> {
    try {
      return await this.store.getCheckpoint(this.key)
    } catch (error) {
      const damaged = error instanceof StoreError && !error.retryable
      if (!damaged || this.store.setAside === undefined) throw error
      const where = await this.store.setAside(this.key, 'checkpoint')
      this.report(this.unreadable(error, `a copy was set aside: ${where}`))
      return await this.store.getCheckpoint(this.key)
    }
  }

  private unreadable(cause: unknown, rest: string): StoreError {
    return new StoreError(
      `What the ${this.store.kind} store remembers of "${this.key}" cannot be read: the task begins anew, and ${rest}.`,
      { store: this.store.kind, operation: 'getCheckpoint', key: this.key },
      { cause },
    )
  }
}
