/**
 * The coordination port over one Redis shard. What is decided stands in the scripts; here is what is sent on which
 * connection: calls of turns in batches on one, heartbeats with their repairs on another, grants come in on a third.
 */
import {
  ConfigError,
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
import { joinMesh } from './mesh.js'
import { PushChannel } from './push-channel.js'
import { RedisLink, type LinkTarget } from './redis-link.js'
import { RenewalEntry, compareHeld, nudgeResult, repairEntry, repairResult } from './heartbeat-replies.js'
import { readGrant, readNews } from './replies.js'
import { buryEntry } from './redis-journal.js'
import { asideEntry } from './store-calls.js'
import { composeBatch, type ScriptPatch } from './scripts.js'

export interface RedisBackendOptions {
  target: LinkTarget
  keys: ShardKeys
  windowMs: number
  waitingPerChat: number
  idsPerChat: number
  /** True for stores whose data lies under the same keys. */
  shares: (store: unknown) => boolean
  /** Tests only. */
  patch?: ScriptPatch | undefined
}

interface Opened {
  context: BackendContext
  turns: RedisLink
  heartbeat: RedisLink
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
  private opened: Opened | null = null
  private links: RedisLink[] = []
  private leaseMs = 15_000
  private session = { name: '', escaped: '' }

  constructor(private readonly options: RedisBackendOptions) {}

  async open(context: BackendContext): Promise<void> {
    await this.close()
    this.leaseMs = context.leaseMs
    const { target, keys, windowMs } = this.options
    const { clock, logger, callTimeoutMs } = context
    if (windowMs < 2 * context.leaseMs) {
      throw new ConfigError(
        `Option "dedupeMs" is ${windowMs}; it must be at least twice leaseMs (${2 * context.leaseMs} ms), because receipts of commits are kept that long.`,
        { option: 'dedupeMs', value: windowMs, accepted: `at least ${2 * context.leaseMs} ms` },
      )
    }
    const onReady = (): void => this.whenReady()
    const turns = new RedisLink({ target, role: 'turns', clock, logger, onReady })
    const heartbeat = new RedisLink({ target, role: 'heartbeat', clock, logger, onReady })
    this.links = [turns, heartbeat]
    try {
      await Promise.all([turns.open(callTimeoutMs), heartbeat.open(callTimeoutMs)])
      await joinMesh(turns, { keys, windowMs }, callTimeoutMs, logger)
    } catch (error) {
      turns.close()
      heartbeat.close()
      throw error
    }
    const pushes = new PushChannel({
      target,
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

  private batchesOver(link: RedisLink, callTimeoutMs: number): BatchQueue {
    const { keys, windowMs, waitingPerChat, idsPerChat, patch } = this.options
    return new BatchQueue({
      link,
      script: composeBatch({ waitingPerChat, idsPerChat }, patch),
      holders: keys.holders,
      base: keys.base,
      windowMs,
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
    const { pushes, heartbeat } = this.live()
    await pushes.listen(this.options.keys.grantsOf(request.session))
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
    pushes.leave(this.options.keys.grantsOf(session))
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
    const lines = await batches.call(session, entries, heartbeat)
    const grants: Grant[] = []
    for (const line of lines) {
      if (typeof line !== 'string' || !line.startsWith('X')) continue
      const gap = line.indexOf(' ')
      const key = unescapeName(line.slice(line.lastIndexOf('|') + 1))
      grants.push(readGrant(line, gap + 1, key, unescapeName(line.slice(1, gap))).grant)
    }
    return grants
  }

  take(request: TakeRequest): Promise<TakeReply> {
    const reply = this.add(request.session, takeEntry(request))
    return request.read ? this.checked(request.key, reply) : reply
  }

  /** What cannot be read is moved out of the way, so that nobody stumbles over it again; the state says so too. */
  private async checked(key: string, answer: Promise<TakeReply>): Promise<TakeReply> {
    const reply = await answer
    const damaged = reply.outcome === 'granted' ? reply.state?.damaged : undefined
    for (const one of damaged ?? []) {
      const { batches, context } = this.live()
      const chat = escapeName(key)
      const entry =
        one.what === 'record' ? buryEntry(one.key.slice(one.key.lastIndexOf(' ') + 1)) : asideEntry(one)
      if (!entry) continue
      batches.add('', { ...entry, chat }).catch((error: unknown) => {
        context.logger.warn({ err: error, ...one }, 'a damaged value could not be moved aside yet')
      })
    }
    return reply
  }

  release(request: ReleaseRequest): Promise<void> {
    return this.add(request.session, releaseEntry(request))
  }

  withdraw(request: WithdrawRequest): Promise<void> {
    return this.add(request.session, withdrawEntry(request))
  }

  commit(request: CommitRequest): Promise<CommitResult> {
    return this.add(request.session, commitEntry(request, this.options.idsPerChat))
  }

  nudge(session: string, waiting: readonly WaitingKey[]): Promise<NudgeReply[]> {
    const { batches } = this.live()
    const name = escapeName(session)
    return Promise.all(waiting.map((one) => batches.add(name, nudgeEntry(one))))
  }

  /** One entry as a call of its own. */
  private async one(session: string, link: RedisLink, entry: Entry<string>): Promise<string> {
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
    const stem = this.options.keys.grantsOf('')
    if (channel.startsWith(stem)) this.tell(unescapeName(channel.slice(stem.length)), text.split('\n'))
  }

  private tell(session: string, lines: string[]): void {
    const listener = this.opened?.context.listener
    if (!listener) return
    for (const line of lines) {
      const news = readNews(line)
      if (news.kind === 'granted') listener.granted(session, news.grant)
      else listener.duplicate(session, news.key, news.ticket)
    }
  }
}
