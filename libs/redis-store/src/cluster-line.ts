/**
 * A line to whichever node of a cluster serves one slot, led by what the nodes say: see `cluster-lines.ts`.
 */
import { ConfigError, CoordinationUnavailableError, type Clock } from '@botmesh/core'
import type { ClusterMap } from './cluster-map.js'
import type { Line, LineEvents, LineOptions, LineRole } from './line.js'
import type { RedisLink } from './redis-link.js'
import type { ServerAddress } from './redis-target.js'
import type { Script } from './scripts.js'

/** Longest that one node is tried before the others are asked again who serves the slot. */
const ONE_SERVER_MS = 1500
const AGAIN_MS = 25
/** Longest pause between two nodes that each name the other. */
const ASTRAY_MS = 400
/** Shortest attempt that is worth while. */
const LEAST_MS = 100

export interface Connection {
  link: RedisLink
  address: ServerAddress
}

/** The connections that lines share: `ClusterLines`. */
export interface ServerConnections {
  readonly name: string
  readonly clock: Clock
  readonly map: ClusterMap
  add(line: ClusterLine): void
  remove(line: ClusterLine): void
  /** To whoever serves this slot as far as is known; it may not be ready. */
  connectionFor(role: LineRole, slot: number): Connection | null
  connectionTo(role: LineRole, address: ServerAddress): Connection
  /** What comes on this channel is for this line. */
  claim(channel: string, line: ClusterLine): void
  unclaim(channel: string): void
  /** Ask the nodes anew. */
  worry(): void
}

export class ClusterLine implements Line {
  current: Connection | null = null
  readonly events: LineEvents
  private closed = true

  constructor(
    private readonly lines: ServerConnections,
    private readonly options: LineOptions,
  ) {
    this.events = options
  }

  get ready(): boolean {
    return this.current?.link.ready === true
  }

  get place(): string {
    return this.current?.link.place ?? this.lines.name
  }

  async open(timeoutMs: number): Promise<void> {
    this.closed = false
    this.lines.add(this)
    const { clock } = this.lines
    const until = clock.monotonic() + timeoutMs
    for (;;) {
      const leftMs = Math.max(1, until - clock.monotonic())
      try {
        if (!this.lines.map.ownerOf(this.options.slot)) await this.lines.map.refresh(leftMs)
        this.follow()
        if (this.closed || !this.current) throw this.unreachable()
        return await this.current.link.open(Math.min(leftMs, ONE_SERVER_MS))
      } catch (error) {
        // One more that time cuts short would only hide the reason.
        const over = until - clock.monotonic() < LEAST_MS
        if (error instanceof ConfigError || this.closed || over) throw error
        await this.pause(AGAIN_MS)
        await this.lines.map.refresh(Math.max(1, until - clock.monotonic())).catch(() => undefined)
      }
    }
  }

  close(): void {
    this.closed = true
    this.current = null
    this.lines.remove(this)
  }

  renew(): void {
    this.current?.link.renew()
  }

  /** Takes the connection to who serves the slot now; says so if it is another one. */
  follow(): void {
    if (this.closed) return
    const next = this.lines.connectionFor(this.options.role, this.options.slot)
    if (!next || next === this.current) return
    if (this.current) this.events.onDown?.()
    this.current = next
    if (next.link.ready) this.events.onReady?.()
  }

  eval(script: Script, args: string[], timeoutMs: number, pushesFirst?: boolean): Promise<unknown> {
    const whole = withAbsentKey(args)
    return this.led(timeoutMs, (link, leftMs) => link.eval(script, whole, leftMs, pushesFirst))
  }

  call(name: string, args: string[], timeoutMs: number): Promise<unknown> {
    return this.led(timeoutMs, (link, leftMs) => link.call(name, args, leftMs))
  }

  async subscribe(channels: readonly string[]): Promise<void> {
    const link = this.current?.link
    if (!link) throw this.unreachable()
    for (const channel of channels) {
      this.lines.claim(channel, this)
      await link.subscribe([channel])
    }
  }

  async unsubscribe(channel: string): Promise<void> {
    this.lines.unclaim(channel)
    await this.current?.link.unsubscribe(channel)
  }

  async ping(): Promise<void> {
    if (!this.current) throw this.unreachable()
    await this.current.link.ping()
  }

  private async led<T>(timeoutMs: number, run: (link: RedisLink, leftMs: number) => Promise<T>): Promise<T> {
    const { clock } = this.lines
    const until = clock.monotonic() + timeoutMs
    let moves = 0
    for (;;) {
      const connection = this.current
      if (!connection) throw this.unreachable()
      try {
        return await run(connection.link, Math.max(1, until - clock.monotonic()))
      } catch (error) {
        const lead = readLead(error)
        if (!lead || this.closed || clock.monotonic() >= until) throw error
        if (lead === 'later') await this.later(until)
        else await this.move(lead, connection, moves, until)
        moves += lead === 'later' ? 0 : 1
      }
    }
  }

  private later(until: number): Promise<void> {
    this.lines.worry()
    return this.pause(Math.min(AGAIN_MS, until - this.lines.clock.monotonic()))
  }

  /**
   * Goes where a node says. The first word is followed at once; who is sent on again waits before, ever longer: two nodes
   * that name each other (a failover that one of them does not know of) are not to be asked without a pause.
   */
  private async move(to: ServerAddress, from: Connection, moves: number, until: number): Promise<void> {
    const { clock, map } = this.lines
    this.lines.worry()
    if (moves > 0) {
      const pauseMs = Math.min(ASTRAY_MS, AGAIN_MS * 2 ** (moves - 1))
      await this.pause(Math.min(pauseMs, until - clock.monotonic()))
      // Those who were asked meanwhile may know better.
      if (this.current !== from) return
    }
    map.moved(this.options.slot, map.reach(to.host, to.port, from.address))
    this.follow()
    const leftMs = until - clock.monotonic()
    // The connection may have just been begun.
    if (this.current && !this.current.link.ready && leftMs > 0) await this.current.link.open(leftMs)
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.lines.clock.setTimeout(resolve, Math.max(1, ms)))
  }

  private unreachable(): CoordinationUnavailableError {
    return new CoordinationUnavailableError('unreachable', { where: `Redis at ${this.place}` })
  }
}

type Lead = { host: string; port: number } | 'later'

/** What a node says that has not done what it was asked; null for anything else. */
function readLead(error: unknown): Lead | null {
  const cause = error instanceof CoordinationUnavailableError ? error.cause : error
  if (!(cause instanceof Error)) return null
  const [, host, port] = /^MOVED \d+ (.*):(\d+)/.exec(cause.message) ?? []
  if (host !== undefined) return { host, port: Number(port) }
  return /^(?:ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY)\b/.test(cause.message) ? 'later' : null
}

/**
 * A script names one key and uses others of its slot. While a slot is on its way from one node to another, what it would
 * find there is a part of the truth: a session whose key has gone ahead would count as dead. So each call also names a key
 * that never exists: with a key missing, a node answers `ASK` or `TRYAGAIN` before it runs anything, for as long as the
 * slot is on its way.
 */
function withAbsentKey(args: readonly string[]): string[] {
  const [, key = '', ...rest] = args
  return ['2', key, `${key.slice(0, key.indexOf('}:') + 2)}-`, ...rest]
}
