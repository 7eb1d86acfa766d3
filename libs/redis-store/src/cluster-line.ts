/**
 * A line to whichever node of a cluster serves one slot, led by what the nodes say: see `cluster-lines.ts`.
 */
import { ConfigError, CoordinationUnavailableError, type Clock } from '@botmesh/core'
import type { ClusterMap } from './cluster-map.js'
import type { Line, LineEvents, LineOptions, LineRole } from './line.js'
import type { RedisLink } from './redis-link.js'
import type { NodeAddress } from './redis-target.js'
import type { Script } from './scripts.js'

/** Longest that one node is tried before the others are asked again who serves the slot. */
const NODE_MS = 1500
const AGAIN_MS = 25

export interface Connection {
  link: RedisLink
  address: NodeAddress
}

/** The connections that lines share: `ClusterLines`. */
export interface NodeConnections {
  readonly name: string
  readonly clock: Clock
  readonly map: ClusterMap
  add(line: ClusterLine): void
  remove(line: ClusterLine): void
  /** To whoever serves this slot as far as is known; it may not be ready. */
  connectionFor(role: LineRole, slot: number): Connection | null
  connectionTo(role: LineRole, address: NodeAddress): Connection
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
    private readonly lines: NodeConnections,
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
        return await this.current.link.open(Math.min(leftMs, NODE_MS))
      } catch (error) {
        if (error instanceof ConfigError || this.closed || clock.monotonic() >= until) throw error
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

  eval(script: Script, args: string[], timeoutMs: number): Promise<unknown> {
    return this.led(timeoutMs, (link, leftMs, asking) => link.eval(script, args, leftMs, asking))
  }

  call(name: string, args: string[], timeoutMs: number): Promise<unknown> {
    return this.led(timeoutMs, (link, leftMs, asking) => link.call(name, args, leftMs, asking))
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

  private async led<T>(
    timeoutMs: number,
    run: (link: RedisLink, leftMs: number, asking: boolean) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.lines
    const until = clock.monotonic() + timeoutMs
    let asked: Connection | null = null
    for (;;) {
      const connection: Connection | null = asked ?? this.current
      if (!connection) throw this.unreachable()
      const leftMs = Math.max(1, until - clock.monotonic())
      try {
        // Led here by another node: the connection may have just been begun.
        if (asked && !connection.link.ready) await connection.link.open(leftMs)
        return await run(connection.link, leftMs, asked !== null)
      } catch (error) {
        const lead = readLead(error)
        if (!lead) throw error
        if (this.closed || clock.monotonic() >= until) throw error
        asked = await this.lead(lead, connection, until - clock.monotonic())
      }
    }
  }

  /** @returns the connection to ask at, once, if it is not the line's own. */
  private async lead(lead: Lead, from: Connection, leftMs: number): Promise<Connection | null> {
    const { slot, role } = this.options
    if (lead.kind === 'later') {
      this.lines.worry()
      await this.pause(Math.min(AGAIN_MS, leftMs))
      return null
    }
    const address = this.lines.map.reach(lead.host, lead.port, from.address)
    if (lead.kind === 'ask') return this.lines.connectionTo(role, address)
    this.lines.map.moved(slot, address)
    this.follow()
    this.lines.worry()
    if (this.current && !this.current.link.ready) await this.current.link.open(leftMs)
    return null
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.lines.clock.setTimeout(resolve, Math.max(1, ms)))
  }

  private unreachable(): CoordinationUnavailableError {
    return new CoordinationUnavailableError('unreachable', { where: `Redis at ${this.place}` })
  }
}

type Lead = { kind: 'moved' | 'ask'; host: string; port: number } | { kind: 'later' }

/** What a node says that has not done what it was asked; null for anything else. */
function readLead(error: unknown): Lead | null {
  const cause = error instanceof CoordinationUnavailableError ? error.cause : error
  if (!(cause instanceof Error)) return null
  const [, word, host = '', port] = /^(MOVED|ASK) \d+ (.*):(\d+)/.exec(cause.message) ?? []
  if (word !== undefined) return { kind: word === 'ASK' ? 'ask' : 'moved', host, port: Number(port) }
  return /^(?:TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY)\b/.test(cause.message)
    ? { kind: 'later' }
    : null
}
