/**
 * A turn in the hands of the application.
 *
 * States: `held` → `ending` (a release, or a commit with release, is under way) → `ended`; `held` or `ending` →
 * `lost`. Lost and ended are final. A commit that is under way is never cut: a release waits for it, and a commit
 * with release makes the release unnecessary.
 */
import { LeaseLostError, type LeaseLostReason } from '../contracts/errors.js'
import type { Turn } from '../contracts/coordinator.js'
import type { ChatState, CommitResult, Effects } from '../contracts/state-store.js'
import { incarnationOf, type Grant } from './coordination-backend.js'
import type { RepairEnd } from './repair-queue.js'

/** What a turn needs from its shard. */
export interface TurnHost {
  /** Looks at the clock; false after the loss, which it may bring about itself. */
  trusted(): boolean
  /** Sends until answered. `ended`: answered, or the session is gone. `firstTried`: the first attempt is over. */
  release(ended: () => void, firstTried: () => void, unused: boolean): void
  /** Sends until answered, the n-th commit of this turn. */
  commit(n: number, effects: Effects, release: boolean, ended: (end: RepairEnd) => void): void
  /** The turn is over for good: forget it. */
  ended(): void
  /** A commit was refused: tell whoever listens. */
  refused(): void
}

export class HeldTurn implements Turn {
  private status: 'held' | 'ending' | 'ended' | 'lost' = 'held'
  private lostError: LeaseLostError | null = null
  /** Made when first asked for: most turns end without anybody looking at their signal. */
  private controller: AbortController | null = null
  private commits = 0
  private working: Promise<CommitResult> | null = null
  private releasing: Promise<void> | null = null
  /** The row's revision as this turn knows it: from the grant, then from its own commits. Undefined: unknown. */
  private rowRevision: string | null | undefined
  /** Called once if the turn is lost. */
  onLost: ((reason: LeaseLostReason) => void) | null = null

  constructor(
    private readonly grant: Grant,
    readonly state: ChatState | undefined,
    private readonly host: TurnHost,
  ) {
    this.rowRevision = grant.revision
  }

  get key(): string {
    return this.grant.key
  }

  get fence(): number {
    return this.grant.fence
  }

  get previousHolder(): string | null {
    const { previousHolder } = this.grant
    return previousHolder === null ? null : incarnationOf(previousHolder)
  }

  get revision(): string | null | undefined {
    return this.grant.revision
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController()
      if (this.lostError) this.controller.abort(this.lostError)
    }
    return this.controller.signal
  }

  assertHeld(): void {
    const refusal = this.notHeld()
    if (refusal) throw refusal
  }

  private notHeld(): LeaseLostError | null {
    if (this.status === 'held' && this.host.trusted()) return null
    return this.lostError ?? this.over()
  }

  get ending(): boolean {
    return this.status === 'ending'
  }

  /**
   * The turn is no longer this replica's. Has no effect on one that has ended.
   * @returns true if somebody should hear of it: not for a turn that was being given up anyway.
   */
  lose(reason: LeaseLostReason, cause?: unknown): boolean {
    if (this.status === 'ended' || this.status === 'lost') return false
    if (this.status === 'ending' && !this.working) {
      this.status = 'ended'
      return false
    }
    this.status = 'lost'
    this.lostError = new LeaseLostError(this.key, reason, { fence: this.fence, cause })
    this.controller?.abort(this.lostError)
    this.onLost?.(reason)
    return true
  }

  release({ unused = false }: { unused?: boolean } = {}): Promise<void> {
    this.releasing ??= this.working ? this.releaseAfterWork() : this.releaseNow(unused && this.commits === 0)
    return this.releasing
  }

  private releaseNow(unused: boolean): Promise<void> {
    if (this.status !== 'held') return Promise.resolve()
    this.status = 'ending'
    return new Promise((firstTried) => this.host.release(() => this.end(), firstTried, unused))
  }

  /** A commit with release under way makes this one unnecessary; any other has to land first. */
  private async releaseAfterWork(): Promise<void> {
    while (this.working) await this.working.catch(() => undefined)
    await this.releaseNow(false)
  }

  commit(effects: Effects, options: { release?: boolean } = {}): Promise<CommitResult> {
    const release = options.release ?? true
    return this.working ? this.commitAfterWork(effects, release) : this.commitNow(effects, release)
  }

  private async commitAfterWork(effects: Effects, release: boolean): Promise<CommitResult> {
    while (this.working) await this.working.catch(() => undefined)
    return this.commitNow(effects, release)
  }

  /** One promise: this is the end of almost every turn. */
  private commitNow(effects: Effects, release: boolean): Promise<CommitResult> {
    const refusal = this.notHeld()
    if (refusal) return Promise.reject(refusal)
    if (release) this.status = 'ending'
    this.commits += 1
    this.working = new Promise<CommitResult>((resolve, reject) => {
      this.host.commit(this.commits, effects, release, (end) => {
        try {
          resolve(this.committed(effects, release, end))
        } catch (error) {
          reject(error)
        } finally {
          this.working = null
        }
      })
    })
    return this.working
  }

  private committed(effects: Effects, release: boolean, end: RepairEnd): CommitResult {
    if (end === 'session-lost' || end === 'done') throw this.lostError ?? this.over()
    if ('failed' in end) {
      // Not acceptable and without effect: the turn goes on, and whoever asked may release it.
      if (this.status === 'ending') this.status = 'held'
      throw end.failed
    }
    if (end.commit.outcome === 'refused') {
      const unheard = this.lose('superseded')
      if (unheard) this.host.refused()
    } else if (release) {
      this.end()
    }
    return this.withRevision(effects, end.commit)
  }

  /** Nobody else writes under this turn, so a commit that leaves the checkpoint alone need not look at its row. */
  private withRevision(effects: Effects, result: CommitResult): CommitResult {
    if (result.outcome === 'refused') return result
    if (effects.checkpoint !== undefined || this.rowRevision === undefined) this.rowRevision = result.revision
    return result.revision === this.rowRevision ? result : { ...result, revision: this.rowRevision }
  }

  private end(): void {
    if (this.status !== 'lost') this.status = 'ended'
    this.host.ended()
  }

  private over(): LeaseLostError {
    return new LeaseLostError(this.key, 'expired', { fence: this.fence })
  }
}
