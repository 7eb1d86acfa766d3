/**
 * A line is how one shard is reached for one purpose: a connection to the only server, or to whichever node of a
 * cluster serves the shard's slot at present. Whoever uses one need not know which.
 */
import type { Clock, Logger } from '@botmesh/core'
import type { Script } from './scripts.js'

export type LineRole = 'turns' | 'heartbeat' | 'grants' | 'store' | 'log'

export interface LineEvents {
  /** Usable (again): subscriptions have to be made anew. */
  onReady?: (() => void) | undefined
  /** Not usable now; it is made anew in the background. */
  onDown?: (() => void) | undefined
  onMessage?: ((channel: string, text: string) => void) | undefined
}

export interface LineOptions extends LineEvents {
  role: LineRole
  /** Of the shard. */
  slot: number
}

export interface Line {
  readonly ready: boolean
  /** `host:port` of the server that is meant; no secrets. */
  readonly place: string
  /**
   * Connects, and goes on trying in the background.
   * @throws ConfigError if the server refuses us; CoordinationUnavailableError if it is not there within `timeoutMs`.
   */
  open(timeoutMs: number): Promise<void>
  /** Idempotent, never throws; calls that are not answered reject. */
  close(): void
  /** Gives the connection up and makes a new one: what was sent is not answered, and nothing says that it ever will. */
  renew(): void
  /**
   * @param pushesFirst what the script publishes is to leave the server before its reply does: who is told by it starts
   *   while we are still on our way. @returns the reply.
   * @throws CoordinationUnavailableError whenever the fate of the call is unknown.
   */
  eval(script: Script, args: string[], timeoutMs: number, pushesFirst?: boolean): Promise<unknown>
  /** A plain command; rejects as `eval` does. */
  call(name: string, args: string[], timeoutMs: number): Promise<unknown>
  /** @throws what the server says, such as NOPERM. */
  subscribe(channels: readonly string[]): Promise<void>
  unsubscribe(channel: string): Promise<void>
  ping(): Promise<void>
}

/** Makes the lines of one owner: lines to one node of a cluster share a connection per role. */
export interface Lines {
  line(options: LineOptions): Line
}

export interface LineContext {
  clock: Clock
  logger: Logger
}
