/**
 * What the turn machine remembers: sessions, and for each key its holder, its line of tickets and what outlives a
 * turn. Plain data; only `turn-machine.ts` changes it.
 */
import type { CommitResult } from '../contracts/state-store.js'
import { TicketQueue } from './ticket-queue.js'
import type { Grant } from './turn-protocol.js'

export interface SessionState {
  session: string
  replicaId: string
  leaseMs: number
  /** By the machine's clock; the session is dead from this instant on. */
  expiresAt: number
  /** Keys granted to this session and not ended, with their fences. */
  held: Map<string, Grant>
}

export interface HolderState {
  session: string
  grant: Grant
}

export interface Receipt {
  commitId: string
  result: CommitResult
  expiresAt: number
}

export interface KeyState {
  holder: HolderState | null
  queue: TicketQueue
  /** Recorded at every grant, however that turn ends (I8). */
  previousHolder: string | null
  lastFence: number
  /** By ticket: lets a repeated commit answer what the first one answered. Null until there is one. */
  receipts: Map<string, Receipt> | null
  /** Committed inbound ids and when each is forgotten, oldest first (Z3). Null until there is one. */
  committed: Map<string, number> | null
}

/** Told which keys are idle (no holder, nobody waits), so that the owner may forget them (X1). */
export interface IdleKeys {
  add(key: string): void
  delete(key: string): void
}

/** Rules that a test may switch off, one at a time, to prove that some other test notices. */
export type BreakableRule = 'fence-check' | 'dead-tickets' | 'dead-holder' | 'dedupe' | 'fence-floor'

export interface TurnMachineLimits {
  /** How long a committed id is a duplicate. */
  dedupeMs: number
  /** Most committed ids kept per key; the oldest goes first. */
  dedupePerKey: number
  /** Most tickets that wait per key; further takes answer `overflow`. */
  maxWaitingPerKey: number
}

export interface TurnMachineState {
  sessions: Map<string, SessionState>
  /** Process that last wrote the record of a replica id. */
  processes: Map<string, string>
  keys: Map<string, KeyState>
  /** Highest fence known: granted here, or reported by a replica. */
  floor: number
  idle: IdleKeys
  limits: TurnMachineLimits
  broken: ReadonlySet<BreakableRule>
}

export const DEFAULT_LIMITS: TurnMachineLimits = {
  dedupeMs: 24 * 60 * 60_000,
  dedupePerKey: 500,
  maxWaitingPerKey: Infinity,
}

export function emptyTurnMachine(
  options: { limits?: Partial<TurnMachineLimits>; idle?: IdleKeys; broken?: Iterable<BreakableRule> } = {},
): TurnMachineState {
  return {
    sessions: new Map(),
    processes: new Map(),
    keys: new Map(),
    floor: 0,
    idle: options.idle ?? new Set<string>(),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    broken: new Set(options.broken ?? []),
  }
}

export function emptyKey(): KeyState {
  return {
    holder: null,
    queue: new TicketQueue(),
    previousHolder: null,
    lastFence: 0,
    receipts: null,
    committed: null,
  }
}
