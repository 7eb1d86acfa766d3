/** A store whose user dies, or loses replies, at a chosen write. */
import { MemoryStore, StoreError, type FlowCheckpoint } from '@botmesh/core'

/** What one replica sees of a store that others share. */
export class ReplicaStore {
  readonly kind = 'memory'
  readonly getCheckpoint = (key: string) => this.shared.getCheckpoint(key)
  writes = 0
  /** From this write on nothing is answered: `before` it is done, or `after`. */
  dies: { at: number; done: 'before' | 'after' } | undefined
  /** These writes are done, their replies are lost. */
  lost = new Set<number>()
  /** These fail without being done. */
  failing = new Set<number>()
  private readonly deaths: (() => void)[] = []
  private readonly unanswered: ((error: Error) => void)[] = []
  private dead = false
  private buried = false

  constructor(private readonly shared: MemoryStore) {}

  /** Resolves when it has died. */
  get died(): Promise<void> {
    return new Promise((resolve) => (this.dead ? resolve() : this.deaths.push(resolve)))
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    await this.write(() => this.shared.setCheckpoint(key, checkpoint))
  }

  async setCheckpointIf(
    key: string,
    checkpoint: FlowCheckpoint,
    expectedRevision: string | null,
    fence: number,
  ): Promise<boolean> {
    return this.write(() => this.shared.setCheckpointIf(key, checkpoint, expectedRevision, fence))
  }

  private async write<T>(run: () => Promise<T>): Promise<T> {
    const number = ++this.writes
    if (this.dead || (this.dies?.at === number && this.dies.done === 'before')) return this.die()
    if (this.failing.has(number)) throw refusal()
    const answer = await run()
    if (this.dies?.at === number) return this.die()
    if (this.lost.has(number)) throw refusal()
    return answer
  }

  /** Lets what waits for an answer go, at the end of a test. */
  bury(): void {
    this.buried = true
    for (const reject of this.unanswered.splice(0)) reject(refusal())
  }

  private die(): Promise<never> {
    this.dead = true
    for (const wake of this.deaths.splice(0)) wake()
    if (this.buried) return Promise.reject(refusal())
    return new Promise((_, reject) => this.unanswered.push(reject))
  }
}

function refusal(): StoreError {
  return new StoreError('no answer', { store: 'memory', operation: 'setCheckpointIf' }, { retryable: true })
}
