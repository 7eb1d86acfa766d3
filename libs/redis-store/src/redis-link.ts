/**
 * One connection of our own to Redis, made from the settings of the user's client or from a URL.
 *
 * The client's offline queue and its automatic resending are off: a command that is sent later than it was meant is
 * poison here (an old take, an old release). What could not be sent, or was not answered in time, rejects at once
 * with `CoordinationUnavailableError`; the protocol's own rules decide what is repeated. A connection that leaves a
 * call unanswered is given up and made anew.
 *
 * States: `closed` → `open()` → `connecting` ⇄ `ready` → `close()` → `closed`.
 */
import type { Command, Redis } from 'ioredis'
import { ConfigError, CoordinationUnavailableError, type Clock, type Logger, type Timer } from '@botmesh/core'
import type { Line, LineEvents } from './line.js'
import { OpenCalls } from './open-calls.js'
import { ownSettings, type ServerTarget } from './redis-target.js'
import type { Script } from './scripts.js'
import { wireCommand } from './wire.js'

export interface LinkOptions extends LineEvents {
  target: ServerTarget
  /** Names the connection. */
  role: string
  clock: Clock
  logger: Logger
  /** Subscriptions are those of a cluster's shard. */
  sharded?: boolean
  /** A node of a cluster says that what was subscribed to is elsewhere now. */
  onMoved?: () => void
}

/** A handshake that takes longer than this is given up, since a server that hangs accepts connections all the same; each
 * further one may take twice as long, up to the second number. */
const HANDSHAKE_MS = [2000, 16_000] as const

/** What the server says when no repetition can help. */
const REFUSED = /^(?:WRONGPASS|NOAUTH|NOPERM|ERR invalid password|ERR Client sent AUTH)/

/** A refusal that only the operator can end, as the error to throw at start; null for anything else. */
export function asConfigError(error: unknown): ConfigError | null {
  const text = error instanceof Error ? error.message : String(error)
  if (/^(?:WRONGPASS|NOAUTH|ERR invalid password|ERR Client sent AUTH)/.test(text)) {
    return new ConfigError(
      'Redis refused the user name or password; check the credentials in "url" or of "client".',
      { option: 'url', accepted: 'credentials that the server knows' },
      new Error(text.split(' ')[0]),
    )
  }
  if (text.startsWith('NOPERM')) {
    return new ConfigError(
      `Redis does not allow this user what Botmesh needs (${text}); grant it the keys and channels of the prefix and the commands of scripts.`,
      {
        option: 'url',
        accepted: 'a user with +@all on ~<prefix>:* and &<prefix>:*, or its narrower equivalent',
      },
      error,
    )
  }
  return null
}

/** The client notes on its errors what was sent: the credentials of a handshake, a user's messages. Only its name stays. */
function discreet(error: unknown): unknown {
  for (let one = error; one instanceof Error; one = one.cause) {
    const { command } = one as { command?: { name?: unknown } }
    if (command) Object.assign(one, { command: { name: command.name } })
  }
  return error
}

/** The reply; what is thrown does not say what was sent. */
async function told<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply
  } catch (error) {
    throw discreet(error)
  }
}

/** The server cannot do this as it is now; another connection may lead to one that can. */
const NOT_HERE = /^(?:READONLY|MASTERDOWN)/

export class RedisLink implements Line {
  private client: Redis | null = null
  private lastError: Error | null = null
  private refused: ConfigError | null = null
  private readonly calls: OpenCalls
  private handshake: Timer | null = null
  private handshakes = 0
  private readonly waiters = new Set<(error: Error | null) => void>()

  constructor(private readonly options: LinkOptions) {
    this.calls = new OpenCalls(options.clock, (late) => {
      for (const call of late) call.reject(this.unreachable())
      if (this.ready) this.renew()
    })
  }

  get ready(): boolean {
    return this.client?.status === 'ready'
  }

  get place(): string {
    return this.options.target.name
  }

  async open(timeoutMs: number): Promise<void> {
    this.client ??= this.begin()
    if (this.ready) return
    if (this.refused) throw this.refused
    await new Promise<void>((resolve, reject) => {
      const timer = this.options.clock.setTimeout(() => settle(this.unreachable()), timeoutMs)
      const settle = (error: Error | null): void => {
        timer.cancel()
        this.waiters.delete(settle)
        if (error) reject(error)
        else resolve()
      }
      this.waiters.add(settle)
    })
  }

  close(): void {
    const client = this.client
    this.client = null
    this.refused = null
    this.handshake?.cancel()
    this.handshake = null
    for (const call of this.calls.clear()) call.reject(this.unreachable())
    for (const settle of [...this.waiters]) settle(this.unreachable())
    if (!client) return
    client.removeAllListeners()
    // Late errors of a connection that nobody needs any more.
    client.on('error', () => undefined)
    client.disconnect()
  }

  renew(): void {
    this.client?.disconnect(true)
  }

  eval(script: Script, args: string[], timeoutMs: number, pushesFirst = false): Promise<unknown> {
    const { clock } = this.options
    const until = clock.monotonic() + timeoutMs
    return this.send('evalsha', args, timeoutMs, script.sha, pushesFirst).catch((error: unknown) => {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) return this.failed(error)
      // Nothing has run: the server does not know the script (any more), so it is sent whole.
      const leftMs = Math.max(1, until - clock.monotonic())
      return this.send('eval', args, leftMs, script.source).catch((other: unknown) => this.failed(other))
    })
  }

  call(name: string, args: string[], timeoutMs: number): Promise<unknown> {
    return this.send(name, args, timeoutMs).catch((error: unknown) => this.failed(error))
  }

  /** No promise beside the client's own: every turn makes two calls. */
  private send(
    name: string,
    args: readonly string[],
    timeoutMs: number,
    lead?: string,
    pushesFirst = false,
  ): Promise<unknown> {
    const client = this.client
    if (!client || client.status !== 'ready') return Promise.reject(this.unreachable())
    try {
      const command = wireCommand(name, args, lead)
      const reply = pushesFirst ? this.behindPing(client, command) : client.sendCommand(command)
      // Only what is listened to may be given up.
      this.calls.add(command, timeoutMs)
      return reply as Promise<unknown>
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private failed(error: unknown): never {
    if (error instanceof CoordinationUnavailableError) throw error
    if (error instanceof Error && NOT_HERE.test(error.message)) this.renew()
    throw this.unreachable(discreet(error))
  }

  /**
   * Of the clients that it has something to write to, Redis serves those first that came last. Without more, a caller's
   * reply comes after what its script published, so it leaves before: the caller goes on, and where processors are few it
   * keeps the one from starting whom it has just made room for. With a reply to something else waiting already the caller
   * comes first, and so is served last. Both are sent in one packet. (A server with another order answers all the same.)
   */
  private behindPing(client: Redis, command: Command): unknown {
    client.stream.cork()
    try {
      // If it is lost, so is the call behind it; and a server that refuses it answers all the same.
      const ping = client.sendCommand(wireCommand('ping', [])) as Promise<unknown>
      ping.catch(() => undefined)
      return client.sendCommand(command)
    } finally {
      client.stream.uncork()
    }
  }

  async subscribe(channels: readonly string[]): Promise<void> {
    const client = this.usable()
    await told(this.options.sharded ? client.ssubscribe(...channels) : client.subscribe(...channels))
  }

  async unsubscribe(channel: string): Promise<void> {
    const client = this.usable()
    await told(this.options.sharded ? client.sunsubscribe(channel) : client.unsubscribe(channel))
  }

  async ping(): Promise<void> {
    await told(this.usable().ping())
  }

  private usable(): Redis {
    if (this.client?.status === 'ready') return this.client
    throw this.unreachable()
  }

  private begin(): Redis {
    const { logger, role, target, sharded } = this.options
    const client = target.make(ownSettings(role))
    client.on('error', (error: Error) => {
      discreet(error)
      this.lastError = error
      this.noteRefusal(client, error)
      logger.debug({ err: error, connection: role }, 'the connection to Redis failed')
    })
    client.on('connecting', () => this.boundHandshake(client))
    client.on('ready', () => {
      if (client !== this.client) return
      this.handshake?.cancel()
      this.handshakes = 0
      // A refusal that is over counts no more.
      this.lastError = this.refused = null
      for (const settle of [...this.waiters]) settle(null)
      this.options.onReady?.()
    })
    client.on('close', () => {
      if (client === this.client) this.options.onDown?.()
    })
    client.on(sharded ? 'smessage' : 'message', (channel: string, text: string) =>
      this.options.onMessage?.(channel, text),
    )
    client.on('moved', () => this.options.onMoved?.())
    client.connect().catch((error: unknown) => {
      if (error instanceof Error) this.noteRefusal(client, error)
    })
    return client
  }

  /** The client itself waits for ever for a server that accepts the connection and then says nothing. */
  private boundHandshake(client: Redis): void {
    const [first, longest] = HANDSHAKE_MS
    const ms = Math.min(longest, first * 2 ** this.handshakes)
    this.handshakes = Math.min(this.handshakes + 1, 8)
    this.handshake?.cancel()
    this.handshake = this.options.clock.setTimeout(
      () => {
        if (client === this.client && !this.ready) this.renew()
      },
      ms,
      { background: true },
    )
  }

  private noteRefusal(client: Redis, error: Error): void {
    if (client !== this.client && this.client !== null) return
    if (!REFUSED.test(error.message)) return
    this.refused = asConfigError(error)
    for (const settle of [...this.waiters]) settle(this.refused)
  }

  private unreachable(cause: unknown = this.lastError): CoordinationUnavailableError {
    return new CoordinationUnavailableError('unreachable', {
      cause: cause ?? undefined,
      where: `Redis at ${this.place}`,
    })
  }
}
