/**
 * Where hand-over is tried: replicas of one bot that can be killed, frozen, thawed and stopped, and a time that passes.
 * A scenario speaks in leases, so that it runs on the in-process hub with a clock of its own and on a real server in
 * real time alike. Another backend joins by implementing `HandoverBed`.
 */
import type { Bot, BotConfig, BotEvents, Clock, CoordinationOptions, Message } from '@botmesh/core'
import type { CallFaultOptions, CallFaults, FakeProvider } from '@botmesh/core/testing'

/** What the store holds of a chat's conversation. */
export type Stored = 'checkpoint' | 'marker' | 'none'

export interface ReplicaOptions {
  define: (bot: Bot, name: string) => void
  coordination?: Partial<CoordinationOptions>
  config?: Partial<BotConfig>
  /** A fault at one of its calls. A crash that it causes is a `kill`. */
  faults?: Omit<CallFaultOptions, 'onCrash'>
}

export type HandoverEvent = BotEvents['coordination:handover']

export interface Replica {
  readonly name: string
  readonly bot: Bot
  readonly faults: CallFaults
  /** Its own: stands still while it is frozen, and for ever once it is dead. */
  readonly clock: Clock
  /** Its own, not wrapped: what arrives here arrives at the process. */
  readonly provider: FakeProvider
  readonly errors: unknown[]
  readonly handovers: HandoverEvent[]
  readonly handled: BotEvents['message:handled'][]
  readonly lost: BotEvents['coordination:lease-lost'][]
  /** Hands in a message as the platform would. Resolves when the platform may be told; never if the replica dies. */
  receive(message: Partial<Message> & { id: string; body: string }): Promise<void>
  /** It dies here and now: nothing is released, nothing that it asked for is heard. */
  kill(): void
  /** It stands still, as a process that is stopped by a signal; it does not know. */
  freeze(): void
  thaw(): void
  /** Stops in good order. */
  stop(): Promise<void>
}

export interface HandoverBed {
  readonly leaseMs: number
  /** When its last replica had started; only in real time. */
  readonly begunAt?: number | undefined
  replica(name: string, options: ReplicaOptions): Promise<Replica>
  /** Lets that many leases pass. */
  pass(leases: number): Promise<void>
  /** Lets time pass until `condition` holds, at most that many leases. */
  until(condition: () => boolean, leases: number): Promise<void>
  /** Calls `fn` after that many leases, whatever becomes of the replicas. */
  later(leases: number, fn: () => void): void
  /** What was said to the chats, by all replicas, in order. */
  readonly said: string[]
  /** Read without touching: no fence is raised by it. */
  stored(chatKey: string): Promise<Stored>
  /** Records of the chat that nobody has acknowledged. */
  pending(chatKey: string): Promise<number>
  /** Stops what still runs. */
  close(): Promise<void>
}

export const CHAT_ID = '100'
/** Key of the only chat of a scenario, with the fake provider's default account. */
export const CHAT_KEY = `fake%3Atest/${CHAT_ID}`
