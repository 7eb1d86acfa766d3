/** One of the two backends of a differential test: what was learned from it, and its answers in comparable form. */
import type { CommitResult } from '../contracts/state-store.js'
import type {
  BackendContext,
  CoordinationBackend,
  Grant,
  NudgeReply,
  TakeReply,
} from '../runtime/coordination-backend.js'
import { silentLogger } from '../runtime/silent-logger.js'
import { systemClock } from '../runtime/system-clock.js'
import type { SeededRandom } from './seeded-random.js'

/** One backend with what was learned from it, by reply or push. */
export class DifferentialSide {
  /** By ticket, in the order of their fences at the end. */
  readonly grants = new Map<string, Grant & { session: string }>()
  readonly duplicates = new Set<string>()

  constructor(
    readonly name: string,
    readonly backend: CoordinationBackend,
    private readonly leaseMs: number,
    private readonly random: SeededRandom,
  ) {}

  open(): Promise<void> {
    const context: BackendContext = {
      leaseMs: this.leaseMs,
      callTimeoutMs: this.leaseMs,
      replicaId: 'differential',
      clock: systemClock,
      random: this.random,
      logger: silentLogger,
      listener: {
        granted: (session, grant) => this.learn(session, grant),
        duplicate: (_session, _key, ticket) => void this.duplicates.add(ticket),
        pushLive: () => undefined,
        reconnected: () => undefined,
      },
    }
    return this.backend.open(context)
  }

  learn(session: string, grant: Grant): void {
    this.grants.set(grant.ticket, { ...grant, session })
  }

  /** The grants as both sides must see them: by ticket, with the rank of the fence within its key. */
  view(): string[] {
    const all = [...this.grants.values()].sort((a, b) => a.fence - b.fence)
    const rank = new Map<string, number>()
    return all
      .map((grant) => {
        rank.set(grant.key, (rank.get(grant.key) ?? 0) + 1)
        return `${grant.key} #${rank.get(grant.key)} ${grant.ticket} to ${grant.session} after ${grant.previousHolder}`
      })
      .sort()
  }
}

export function outcomeOf(reply: TakeReply | NudgeReply): string {
  if (reply.outcome === 'granted') return `granted ${reply.grant.ticket}`
  if (reply.outcome === 'queued')
    return `queued behind ${reply.holder}, ${reply.holderLeftMs > 0 ? 'alive' : 'dead'}`
  return reply.outcome
}

export function outcomeOfCommit(result: CommitResult): string {
  // Why a fence is refused is for people; that it is refused is for programs.
  return result.outcome
}
