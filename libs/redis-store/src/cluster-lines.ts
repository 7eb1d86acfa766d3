/**
 * Lines into a cluster. Every connection is a plain one to one node, by the same rules as with a single server: nothing
 * is queued, nothing is resent unless the server says that it did not do it. Lines of one role whose shards are on one
 * node share its connection.
 *
 * `MOVED` leads a call to the node that is named; `ASK`, `TRYAGAIN`, `CLUSTERDOWN`, `LOADING` and `MASTERDOWN` let it try
 * again a little later; both only within the time that the call has anyway, so that no trust is ever extended. While some
 * line is without a node that answers, the nodes are asked again and again who serves what.
 */
import { ConfigError, type Clock, type Timer } from '@botmesh/core'
import { ClusterLine, type Connection, type ServerConnections } from './cluster-line.js'
import { ClusterMap } from './cluster-map.js'
import type { Line, LineContext, LineOptions, LineRole, Lines } from './line.js'
import { RedisLink } from './redis-link.js'
import { addressName, type ClusterTarget, type ServerAddress } from './redis-target.js'

/** How soon the nodes are asked again, first and at most. */
const WORRY_MS = [50, 500] as const
const REFRESH_MS = 1500

export class ClusterLines implements Lines, ServerConnections {
  readonly map: ClusterMap
  readonly clock: Clock
  /** `<role> <address>` → the connection. */
  private readonly connections = new Map<string, Connection>()
  private readonly lines = new Set<ClusterLine>()
  /** Whose channels are which. */
  private readonly channels = new Map<string, ClusterLine>()
  private timer: Timer | null = null
  private worries = 0
  private again = false

  constructor(
    private readonly target: ClusterTarget,
    private readonly context: LineContext,
  ) {
    this.map = new ClusterMap(target, context)
    this.clock = context.clock
  }

  get name(): string {
    return this.target.name
  }

  line(options: LineOptions): Line {
    return new ClusterLine(this, options)
  }

  add(line: ClusterLine): void {
    this.lines.add(line)
  }

  remove(line: ClusterLine): void {
    if (!this.lines.delete(line)) return
    for (const [channel, of] of this.channels) if (of === line) this.channels.delete(channel)
    this.prune()
  }

  connectionFor(role: LineRole, slot: number): Connection | null {
    const owner = this.map.ownerOf(slot)
    return owner && this.connectionTo(role, owner)
  }

  connectionTo(role: LineRole, address: ServerAddress): Connection {
    const name = `${role} ${addressName(address)}`
    const known = this.connections.get(name)
    if (known) return known
    const { clock, logger } = this.context
    const link = new RedisLink({
      target: this.target.server(address),
      role,
      clock,
      logger,
      sharded: true,
      onReady: () => this.each(link, (line) => line.events.onReady?.()),
      onDown: () => {
        this.each(link, (line) => line.events.onDown?.())
        this.worry()
      },
      onMessage: (channel, text) => this.channels.get(channel)?.events.onMessage?.(channel, text),
      onMoved: () => this.worry(true),
    })
    const connection = { link, address }
    this.connections.set(name, connection)
    link.open(REFRESH_MS).catch((error: unknown) => {
      if (!(error instanceof ConfigError)) this.worry()
      logger.debug({ err: error, node: addressName(address) }, 'no connection to this node yet')
    })
    return connection
  }

  claim(channel: string, line: ClusterLine): void {
    this.channels.set(channel, line)
  }

  unclaim(channel: string): void {
    this.channels.delete(channel)
  }

  /**
   * Asks the nodes who serves what, again and again until every line is ready.
   * @param again subscriptions have to be made anew, whoever serves them.
   */
  worry(again = false): void {
    this.again ||= again
    if (this.timer || this.lines.size === 0) return
    const [first, longest] = WORRY_MS
    const ms = Math.min(longest, first * 2 ** this.worries)
    this.timer = this.clock.setTimeout(() => void this.look(), ms, { background: true })
  }

  private async look(): Promise<void> {
    await this.map.refresh(REFRESH_MS).catch((error: unknown) => {
      this.context.logger.debug({ err: error }, 'no node of the cluster says who serves what')
    })
    this.timer = null
    this.settle()
    const { again } = this
    this.again = false
    if (again) for (const line of this.lines) if (line.ready) line.events.onReady?.()
    const calm = [...this.lines].every((line) => line.ready)
    this.worries = calm ? 0 : Math.min(this.worries + 1, 8)
    if (!calm) this.worry()
  }

  /** Lines go over to those who serve them now. */
  private settle(): void {
    for (const line of this.lines) line.follow()
    this.prune()
  }

  private prune(): void {
    const used = new Set([...this.lines].map((line) => line.current?.link))
    for (const [name, { link }] of this.connections) {
      if (used.has(link)) continue
      this.connections.delete(name)
      link.close()
    }
    if (this.lines.size > 0) return
    this.map.halt()
    this.timer?.cancel()
    this.timer = null
  }

  private each(link: RedisLink, tell: (line: ClusterLine) => void): void {
    for (const line of [...this.lines]) if (line.current?.link === link) tell(line)
  }
}
