/**
 * One start of the provider: from `begin` until it was stopped, lost the leadership, or was refused for good. One
 * connection at a time, the next one only after the former has ended.
 *
 *   connecting   the first connection is being made
 *   open         the session's events come
 *   closed       a pause, then another connection, which resumes the session if Discord lets it; told as `closed`
 *                until it is open again, so that the bot resigns if that takes too long (P3)
 *   over         stopped, leadership lost, or refused: no connection is made from here, ever (scenario 20)
 */
import type { SessionInfo } from '@discordjs/ws'
import {
  Backoff,
  pause,
  ProviderError,
  TransportSession,
  type ProviderState,
  type TransportSessionParts,
} from '@botmesh/core'
import { closePolicy, type ClosePolicy } from './close-codes.js'
import { judgeConnection } from './discord-errors.js'
import type { DiscordClient, GatewayInfo } from './discord.client.js'
import { GatewayConnection, type ConnectionEnd } from './gateway-connection.js'
import { InboundQueue } from './inbound-queue.js'
import type { Interactions } from './interactions.js'
import type { DiscordSettings } from './options.js'
import { parseInbound } from './parse-inbound.js'
import { SessionRecord } from './session-record.js'

/** How long `start` waits for Discord's first word, so that a wrong token is an error of `start`. */
const FIRST_ANSWER_MS = 2_000
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** A connection that lasted this long was a good one: pauses begin anew, and the next one is made at once. */
const STEADY_MS = 60_000

export interface SessionParts extends TransportSessionParts {
  client: DiscordClient
  interactions: Interactions
  settings: DiscordSettings
}

export class DiscordSession extends TransportSession<SessionParts> {
  private readonly queue: InboundQueue
  private readonly record: SessionRecord
  private readonly backoff: Backoff
  private connection: GatewayConnection | undefined
  /** To be resumed by the next connection. */
  private session: SessionInfo | null = null
  private openedAt: number | undefined
  private registered = false

  constructor(parts: SessionParts) {
    super(parts, FIRST_ANSWER_MS)
    const { settings, sink } = parts
    this.record = new SessionRecord(settings.id, sink, () => this.acceptedSession())
    this.queue = new InboundQueue(settings.id, sink, () => this.record.touch())
    this.backoff = new Backoff(sink.random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
  }

  protected async live(): Promise<void> {
    this.session = await this.record.load()
    while (!this.over) {
      const gateway = await this.whereTo()
      if (gateway === undefined || this.over) continue
      await this.connectOnce(gateway)
    }
    await this.queue.close()
    if (!this.lostLeadership && !this.refused) await this.record.write()
    this.record.seal()
  }

  /** @returns undefined after a pause, if Discord does not say. */
  private async whereTo(): Promise<GatewayInfo | undefined> {
    try {
      const gateway = await this.parts.client.gateway(this.halt)
      if (this.session !== null || gateway.remaining > 0) return gateway
      this.report({ status: 'closed', reason: 'too many sessions were begun today' })
      await pause(this.sink.clock, gateway.resetAfterMs, this.halt)
    } catch (error) {
      if (this.halt.aborted) return undefined
      const failure = judgeConnection(error)
      if (failure.kind === 'refused') return this.giveUp('wrong-token', failure.reason)
      this.sink.logger.info({ provider: this.id, reason: failure.reason }, 'discord: not reached')
      this.report({ status: 'closed', reason: failure.reason })
      const waitMs = this.backoff.next()
      await pause(
        this.sink.clock,
        failure.kind === 'slow-down' ? Math.max(waitMs, failure.retryAfterMs) : waitMs,
        this.halt,
      )
    }
    return undefined
  }

  private async connectOnce(gateway: GatewayInfo): Promise<void> {
    const { token, intents } = this.parts.settings
    const connection = new GatewayConnection({
      url: gateway.url,
      token,
      intents,
      session: this.session,
      clock: this.sink.clock,
      onReady: (how) => this.onReady(how),
      onDispatch: (type, data, sequence) => this.onDispatch(type, data, sequence),
      onDebug: (text) => this.debug(text),
    })
    this.connection = connection
    const onHalt = () => void connection.shut(this.leavesSession ? 'keep' : 'forget')
    this.halt.addEventListener('abort', onHalt, { once: true })
    if (!this.halt.aborted) connection.open()
    else onHalt()
    const end = await connection.finished
    this.halt.removeEventListener('abort', onHalt)
    // With all that was received: what is not accepted yet is in the queue here.
    this.session = connection.session
    this.connection = undefined
    if (!this.halt.aborted) await this.onEnd(end)
  }

  /** What comes after a connection that ended by itself. */
  private async onEnd(end: ConnectionEnd): Promise<void> {
    const policy = policyOf(end)
    const { clock, logger } = this.sink
    logger.info({ provider: this.id, code: end.code, reason: policy.reason }, 'discord: connection closed')
    if (policy.next === 'stop') return void this.giveUp(policy.reason, policy.advice ?? policy.reason)
    if (policy.next === 'identify') this.session = null
    this.report({ status: 'closed', reason: policy.reason })
    const steady = this.openedAt !== undefined && clock.monotonic() - this.openedAt > STEADY_MS
    const wasOpen = this.openedAt !== undefined
    this.openedAt = undefined
    if (steady) this.backoff.reset()
    // Discord asks for 1 to 5 s before a new session.
    const leastMs = policy.next === 'identify' ? 1_000 + this.sink.random.next() * 4_000 : 0
    const waitMs = Math.max(leastMs, this.backoff.next())
    // The first resume after a connection that worked is made at once: the session waits.
    if (policy.next === 'resume' && wasOpen && (steady || waitMs <= FIRST_PAUSE_MS)) return
    await pause(clock, waitMs, this.halt)
  }

  private onReady(how: 'identified' | 'resumed'): void {
    if (this.over) return
    this.openedAt = this.sink.clock.monotonic()
    if (how === 'identified') this.queue.restart()
    this.sink.logger.info({ provider: this.id, how }, 'discord: connected')
    this.report({ status: 'open' })
    this.record.touch()
    this.registerCommands()
  }

  private onDispatch(type: unknown, data: unknown, sequence: number): void {
    if (this.over) return
    const { botId, listen, bots } = this.parts.settings
    const { sink } = this
    const event = parseInbound(type, data, { botId, listen, bots })
    if (event.kind === 'ignored') {
      this.queue.push([], sequence)
      this.record.touch()
      return sink.logger.debug({ provider: this.id, reason: event.reason }, 'discord: event ignored')
    }
    if (event.interaction !== undefined) {
      this.parts.interactions.receive(event.interaction, sink.clock, sink.logger)
    }
    this.queue.push(event.messages, sequence)
  }

  /** Once a start: a replica that does not lead registers nothing. */
  private registerCommands(): void {
    const { client, settings } = this.parts
    if (this.registered || settings.commands === null) return
    this.registered = true
    client.registerCommands(settings.commands, settings.commandsGuild).catch((error: unknown) => {
      this.registered = false
      if (this.halt.aborted) return
      const said = error instanceof Error ? error.message : String(error)
      this.sink.error(
        this.failure(`The slash commands could not be registered: ${said}`, 'commands', false, error),
      )
    })
  }

  /** The session as far as the runtime has it: resumed from there, nothing is missed. */
  private acceptedSession(): SessionInfo | null {
    const session = this.connection?.session ?? this.session
    if (session === null) return null
    const accepted = this.queue.acceptedUpTo
    return accepted === 0 ? session : { ...session, sequence: Math.min(session.sequence, accepted) }
  }

  private giveUp(reason: string, advice: string): undefined {
    this.refuse(this.failure(`${advice.replace(/\.$/, '')}.`, reason, true), reason)
    return undefined
  }

  /** A pause may tell again why there is one: once is enough. */
  protected override report(state: ProviderState): void {
    const { state: current } = this
    if (state.status === 'closed' && current.status === 'closed' && state.reason === current.reason) return
    super.report(state)
  }

  /** A session that nobody can resume is ended, so that the bot does not look as if it were there. */
  private get leavesSession(): boolean {
    return this.record.shared
  }

  private get id(): string {
    return this.parts.settings.id
  }

  private debug(text: string): void {
    const { token } = this.parts.settings
    const clean = text.replaceAll(token, '***').replace(/session id: .*/g, 'session id: ***')
    this.sink.logger.debug({ provider: this.id, said: clean }, 'discord: gateway')
  }

  private failure(message: string, reason: string, final: boolean, cause?: unknown): ProviderError {
    return new ProviderError(message, { provider: this.id, reason, final }, cause)
  }
}

function policyOf(end: ConnectionEnd): ClosePolicy {
  if (end.code !== undefined) return closePolicy(end.code)
  if (end.recover === 'none') return closePolicy(undefined)
  const reason = end.reason.toLowerCase().replaceAll(/\W+/g, '-').slice(0, 60)
  return { reason, next: end.recover }
}
