/**
 * Which node of a cluster serves which slot, as last heard. Asked for when a node is gone or says `MOVED`; what is wrong
 * here costs time only, because every node refuses what is not its own.
 */
import { ConfigError, CoordinationUnavailableError } from '@botmesh/core'
import type { LineContext } from './line.js'
import { notACluster } from './layout-errors.js'
import { RedisLink } from './redis-link.js'
import { addressName, type ClusterTarget, type ServerAddress } from './redis-target.js'

interface Owned {
  from: number
  to: number
  owner: ServerAddress
  replicas: ServerAddress[]
}

/** Nodes that are asked at once. */
const AT_ONCE = 2

export class ClusterMap {
  private ranges: Owned[] = []
  /** What single nodes said of single slots since. */
  private readonly moves = new Map<number, ServerAddress>()
  private known: ServerAddress[]
  private asking: Promise<void> | null = null
  /** Connections to those that are being asked. */
  private links: RedisLink[] = []
  private wanted = false

  constructor(
    private readonly target: ClusterTarget,
    private readonly context: LineContext,
  ) {
    this.known = [...target.seeds]
  }

  ownerOf(slot: number): ServerAddress | null {
    const moved = this.moves.get(slot)
    if (moved) return moved
    return this.ranges.find(({ from, to }) => from <= slot && slot <= to)?.owner ?? null
  }

  moved(slot: number, owner: ServerAddress): void {
    this.moves.set(slot, owner)
  }

  /** An address as a node names it, as it is reached from here; an empty host is the one that was asked. */
  reach(host: string, port: number, asked: ServerAddress): ServerAddress {
    return this.target.reach({ host: host === '' || host === '?' ? asked.host : host, port })
  }

  /** Asks the nodes anew. Concurrent calls are one. @throws ConfigError if they refuse us,
   * CoordinationUnavailableError if none answers in time. */
  refresh(timeoutMs: number): Promise<void> {
    this.wanted = true
    this.asking ??= this.ask(timeoutMs).finally(() => {
      this.asking = null
    })
    return this.asking
  }

  /** Nobody needs to know any more: whoever is being asked is let go. */
  halt(): void {
    this.wanted = false
    this.letGo()
  }

  private letGo(): void {
    for (const link of this.links.splice(0)) link.close()
  }

  private async ask(timeoutMs: number): Promise<void> {
    const until = this.context.clock.monotonic() + timeoutMs
    const names = new Map(
      [...this.known, ...this.target.seeds].map((server) => [addressName(server), server]),
    )
    const nodes = [...names.values()]
    let last: unknown
    for (let at = 0; at < nodes.length; at += AT_ONCE) {
      const leftMs = until - this.context.clock.monotonic()
      if (leftMs <= 0 || !this.wanted) break
      const asked = nodes.slice(at, at + AT_ONCE)
      // Each round leaves time for the next ones.
      const ms = Math.max(leftMs / 3, Math.min(leftMs, 100))
      const answers = asked.map((server) => this.askOne(server, ms))
      try {
        return this.take(await Promise.any(answers))
      } catch (error) {
        const reasons = error instanceof AggregateError ? error.errors : [error]
        last = reasons.find((one) => one instanceof ConfigError) ?? reasons[0]
        if (last instanceof ConfigError) throw last
      } finally {
        // Also those that have not answered.
        this.letGo()
      }
    }
    // Those that did not answer are asked last the next time.
    this.known = [...this.known.slice(AT_ONCE), ...this.known.slice(0, AT_ONCE)]
    throw this.unreachable(last)
  }

  private async askOne(server: ServerAddress, timeoutMs: number): Promise<Owned[]> {
    const { clock, logger } = this.context
    const link = new RedisLink({ target: this.target.server(server), role: 'topology', clock, logger })
    this.links.push(link)
    try {
      await link.open(timeoutMs)
      const owned = this.read(await link.call('cluster', ['SLOTS'], timeoutMs), server)
      if (owned.length > 0) return owned
      // It was reset, or has not met the others yet: they may know.
      throw this.unreachable(new Error(`${link.place} knows of no slots: is it part of the cluster?`))
    } catch (error) {
      const cause = error instanceof Error ? error.cause : undefined
      if (cause instanceof Error && /cluster support disabled/.test(cause.message))
        throw notACluster(link.place)
      throw error
    }
  }

  private read(slots: unknown, asked: ServerAddress): Owned[] {
    return (Array.isArray(slots) ? (slots as unknown[]) : []).flatMap((row) => {
      if (!Array.isArray(row)) return []
      const [from, to, ...nodes] = row as [number, number, ...[string | null, number][]]
      const [owner, ...replicas] = nodes.map(([host, port]) => this.reach(host ?? '', port, asked))
      return owner ? [{ from, to, owner, replicas }] : []
    })
  }

  private take(owned: Owned[]): void {
    const all = owned.flatMap(({ owner, replicas }) => [owner, ...replicas])
    this.ranges = owned
    this.moves.clear()
    this.known = [...new Map(all.map((address) => [addressName(address), address])).values()]
  }

  private unreachable(cause: unknown): CoordinationUnavailableError {
    return new CoordinationUnavailableError('unreachable', { where: `Redis at ${this.target.name}`, cause })
  }
}
