/** What one replica sees of a store that others share: it dies, or loses replies, at a chosen write. */
import { StoreError, type ChatState, type FlowCheckpoint } from '@botmesh/core'
import type { SessionStore } from '@botmesh/baileys'

/** A store that can fence, as every built-in one. */
export type FencingStore = SessionStore & Required<Pick<SessionStore, 'setCheckpointIf' | 'openState'>>

export class ReplicaStore {
  readonly kind: string
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

  constructor(private readonly shared: FencingStore) {
    this.kind = shared.kind
  }

  /** Resolves when it has died. */
  get died(): Promise<void> {
    return new Promise((resolve) => (this.dead ? resolve() : this.deaths.push(resolve)))
  }

  /** A write too: it raises the fence. */
  async openState(key: string, fence: number): Promise<ChatState | null> {
    return this.write(() => this.shared.openState(key, fence))
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
    if (this.failing.has(number)) throw this.refusal()
    const answer = await run()
    if (this.dead || this.dies?.at === number) return this.die()
    if (this.lost.has(number)) throw this.refusal()
    return answer
  }

  /** Lets what waits for an answer go, at the end of a test. */
  bury(): void {
    this.buried = true
    for (const reject of this.unanswered.splice(0)) reject(this.refusal())
  }

  private die(): Promise<never> {
    this.dead = true
    for (const wake of this.deaths.splice(0)) wake()
    if (this.buried) return Promise.reject(this.refusal())
    return new Promise((_, reject) => this.unanswered.push(reject))
  }

  private refusal(): StoreError {
    return new StoreError(
      'no answer',
      { store: this.kind, operation: 'setCheckpointIf' },
      { retryable: true },
    )
  }
}
