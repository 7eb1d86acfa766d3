/**
 * The coordination port over one Redis shard. What is decided stands in the scripts; here is what is sent on which
 * connection: calls of turns in batches on one, heartbeats with their repairs on another, grants come in on a third.
 */
import {
  CoordinationUnavailableError,
  type BackendContext,
  type CommitRequest,
  type CommitResult,
  type CoordinationBackend,
  type Grant,
  type HeartbeatReply,
  type HeartbeatRequest,
  type NudgeReply,
  type OpenSessionRequest,
  type ReleaseRequest,
  type TakeReply,
  type TakeRequest,
  type WaitingKey,
  type WithdrawRequest,
} from '@botmesh/core'
import { BatchQueue, type Entry } from './batch-queue.js'
import { commitEntry, nudgeEntry, releaseEntry, takeEntry, withdrawEntry } from './turn-entries.js'
import { escapeName, unescapeName, type ShardKeys } from './keys.js'
import type { ShardedPlace } from './layout.js'
import type { Line, LineEvents, LineRole } from './line.js'
import { requireWindow } from './mesh.js'
import { PushChannel } from './push-channel.js'
import {
  RenewalEntry,
  compareHeld,
  nudgeResult,
  readExplained,
  repairEntry,
  repairResult,
} from './heartbeat-replies.js'
import { readNews } from './replies.js'
import { clearAway } from './damaged-takes.js'
import { composeBatch, type ScriptPatch } from './scripts.js'

export interface RedisBackendOptions {
  place: ShardedPlace
  /** Which of its shards. */
  shard: number
  waitingPerChat: number
  idsPerChat: number
  /** True for stores whose data lies under the same keys. */
  shares: (store: unknown) => boolean
  /** Tests only. */
  patch?: ScriptPatch | undefined
}

interface Opened {
  context: BackendContext
  turns: Line
  heartbeat: Line
  pushes: PushChannel
  batches: BatchQueue
}

/** Grants and tickets that one closing call ends. */
const CLOSE_AT_ONCE = 500
/** Waiting tickets and repairs that one heartbeat call carries: below what a script can unpack. */
const BEAT_ENTRIES = 1900

const asText = (line: string): string => line

export class RedisBackend implements CoordinationBackend {
  readonly kind = 'redis'
  readonly place: string
  private opened: Opened | null = null
  private links: Line[] = []
  private leaseMs = 15_000
  private session = { name: '', escaped: '' }
  /** Fences of grants that were waited for and are held: others may wait for the next one as well. */
  private readonly contended = new Set<number>()

  private readonly keys: ShardKeys
  /** What the channels of grants begin with. */
  private readonly stem: string

  constructor(private readonly options: RedisBackendOptions) {
    const keys = options.place.keys[options.shard]
    if (!keys) throw new RangeError(`There is no shard ${options.shard}.`)
    this.keys = keys
    this.stem = keys.grantsOf('')
    this.place = `Redis at ${options.place.settings.target.name}`
  }

  async open(context: BackendContext): Promise<void> {
    await this.close()
    this.leaseMs = context.leaseMs
    const { place } = this.options
    const { windowMs } = place.settings
    const { clock, logger, callTimeoutMs } = context
    requireWindow(windowMs, context.leaseMs)
    const onReady = (): void => this.whenReady()
    const { slot } = this.keys
    const line = (role: LineRole, events: LineEvents): Line =>
      place.line({ clock, logger }, { role, slot, ...events })
    const turns = line('turns', { onReady })
    const heartbeat = line('heartbeat', { onReady })
    this.links = [turns, heartbeat]
    try {
      await Promise.all([turns.open(callTimeoutMs), heartbeat.open(callTimeoutMs)])
      await place.join(turns, this.keys, callTimeoutMs, { clock, logger })
    } catch (error) {
      turns.close()
      heartbeat.close()
      throw error
    }
    const pushes = new PushChannel({
      line: (events) => line('grants', events),
      clock,
      logger,
      timeoutMs: callTimeoutMs,
      onMessage: (channel, text) => this.heard(channel, text),
      onLive: (live) => context.listener.pushLive(live),
    })
    context.listener.pushLive(false)
    pushes.open()
    this.opened = { context, turns, heartbeat, pushes, batches: this.batchesOver(turns, callTimeoutMs) }
  }

  private batchesOver(link: Line, callTimeoutMs: number): BatchQueue {
    const { place, waitingPerChat, idsPerChat, patch } = this.options
    const { windowMs } = place.settings
    return new BatchQueue({
      link,
      script: composeBatch({ waitingPerChat, idsPerChat, windowMs }, patch, place.sharded),
      holders: this.keys.holders,
      base: this.keys.base,
      leaseMs: () => this.leaseMs,
      timeoutMs: () => callTimeoutMs,
      onNews: (session, lines) => this.tell(unescapeName(session), lines),
    })
  }

  async close(): Promise<void> {
    this.opened?.pushes.close()
    this.opened = null
    // Also those that are still trying to connect.
    for (const link of this.links) link.close()
    this.links = []
  }

  sharesStateWith(store: unknown): boolean {
    return this.options.shares(store)
  }

  async openSession(request: OpenSessionRequest): Promise<void> {
    this.contended.clear()
    const { pushes, heartbeat } = this.live()
    await pushes.listen(this.keys.grantsOf(request.session))
    const line = await this.one(request.session, heartbeat, {
      chat: '',
      token: `S${request.floor}`,
      more: [escapeName(request.replicaId), escapeName(request.processId)],
      read: asText,
    })
    if (line !== 'S') throw new CoordinationUnavailableError('unreachable')
  }

  async closeSession(session: string): Promise<void> {
    const { heartbeat, pushes } = this.live()
    pushes.leave(this.keys.grantsOf(session))
    for (;;) {
      const line = await this.one(session, heartbeat, { chat: '', token: `E${CLOSE_AT_ONCE}`, read: asText })
      if (line !== 'E1') return
    }
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply> {
    const { heartbeat, batches, pushes } = this.live()
    pushes.ping()
    const session = escapeName(request.session)
    const renewal = new RenewalEntry(request)
    const rest: Entry<unknown>[] = [
      ...request.waiting.map((one) => nudgeEntry(one)),
      ...request.repairs.map((repair) => repairEntry(repair)),
    ]
    const [line, ...results] = await batches.call(
      session,
      [renewal, ...rest.slice(0, BEAT_ENTRIES)],
      heartbeat,
    )
    if (typeof line !== 'string') throw line
    const { held } = renewal
    if (line === 'L' || held === null) return { outcome: 'session-lost' }
    for (let at = BEAT_ENTRIES; at < rest.length; at += BEAT_ENTRIES) {
      results.push(...(await batches.call(session, rest.slice(at, at + BEAT_ENTRIES), heartbeat)))
    }
    const compared = compareHeld(request, held)
    const waiting = request.waiting.map((_, index) => nudgeResult(results[index]))
    // The fences were listed before the nudges made grants.
    const nudged = waiting.flatMap((reply) => (reply.outcome === 'granted' ? [reply.grant] : []))
    return {
      outcome: 'alive',
      missing: compared.missing,
      unknown: [...(await this.explain(session, compared.unknown)), ...nudged],
      waiting,
      repairs: request.repairs.map((repair, index) =>
        repairResult(repair, results[request.waiting.length + index]),
      ),
      ...(line.length > 1 ? { twin: unescapeName(line.slice(1)) } : {}),
    }
  }

  private async explain(session: string, fences: string[]): Promise<Grant[]> {
    if (fences.length === 0) return []
    const { batches, heartbeat } = this.live()
    const entries = fences
      .slice(0, BEAT_ENTRIES)
      .map((fence) => ({ chat: '', token: `X${fence}`, read: asText }))
    return readExplained(await batches.call(session, entries, heartbeat))
  }

  take(request: TakeRequest): Promise<TakeReply> {
    const { opened } = this
    if (!opened || !request.read) return this.add(request.session, takeEntry(request))
    const { batches, context } = opened
    const asked = request.read.user === undefined ? request : this.options.place.within(request)
    const entry = takeEntry(asked, (damaged) => clearAway(request.key, damaged, batches, context.logger))
    return this.add(request.session, entry)
  }

  release(request: ReleaseRequest): Promise<void> {
    return this.add(request.session, this.marked(releaseEntry(request), request.fence))
  }

  withdraw(request: WithdrawRequest): Promise<void> {
    return this.add(request.session, withdrawEntry(request))
  }

  commit(request: CommitRequest): Promise<CommitResult> {
    const entry = commitEntry(request, this.options.idsPerChat)
    return this.add(request.session, request.release ? this.marked(entry, request.fence) : entry)
  }

  private marked<T>(entry: Entry<T>, fence: number): Entry<T> {
    if (this.contended.size > 0 && this.contended.delete(fence)) entry.contended = true
    return entry
  }

  nudge(session: string, waiting: readonly WaitingKey[]): Promise<NudgeReply[]> {
    const { batches } = this.live()
    const name = escapeName(session)
    return Promise.all(waiting.map((one) => batches.add(name, nudgeEntry(one))))
  }

  /** One entry as a call of its own. */
  private async one(session: string, link: Line, entry: Entry<string>): Promise<string> {
    const [result] = await this.live().batches.call(escapeName(session), [entry], link)
    if (typeof result === 'string') return result
    throw result
  }

  private add<T>(session: string, entry: Entry<T>): Promise<T> {
    const { opened } = this
    if (!opened) return Promise.reject(new CoordinationUnavailableError('unreachable'))
    return opened.batches.add(this.escaped(session), entry)
  }

  /** Almost always the same as before. */
  private escaped(session: string): string {
    if (session !== this.session.name) this.session = { name: session, escaped: escapeName(session) }
    return this.session.escaped
  }

  private live(): Opened {
    if (this.opened) return this.opened
    throw new CoordinationUnavailableError('unreachable')
  }

  private whenReady(): void {
    const opened = this.opened
    if (opened?.turns.ready && opened.heartbeat.ready) opened.context.listener.reconnected()
  }

  private heard(channel: string, text: string): void {
    const { stem } = this
    if (channel.startsWith(stem)) this.tell(unescapeName(channel.slice(stem.length)), text.split('\n'))
  }

  private tell(session: string, lines: string[]): void {
    const listener = this.opened?.context.listener
    if (!listener) return
    for (const line of lines) {
      const news = readNews(line)
      if (news.kind === 'granted') {
        this.contended.add(news.grant.fence)
        listener.granted(session, news.grant)
      } else listener.duplicate(session, news.key, news.ticket)
    }
  }
}
