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
import { Redis, type RedisOptions } from 'ioredis'
import { ConfigError, CoordinationUnavailableError, type Clock, type Logger, type Timer } from '@botmesh/core'
import type { Script } from './scripts.js'
import { wireCommand } from './wire.js'

export type LinkRole = 'turns' | 'heartbeat' | 'grants' | 'store' | 'log'

export interface LinkTarget {
  readonly url?: string
  readonly client?: Redis
}

export interface LinkOptions {
  target: LinkTarget
  role: LinkRole
  clock: Clock
  logger: Logger
  onReady?: () => void
  onDown?: () => void
}

/** Settings that all our connections share, whatever the given client has. */
function ownSettings(role: LinkRole): RedisOptions {
  return {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    keyPrefix: '',
    connectionName: `botmesh-${role}`,
    retryStrategy: (times) => Math.min(20 * 2 ** Math.min(times, 6), 1000),
  }
}

function makeClient({ target, role }: LinkOptions): Redis {
  if (target.client) return target.client.duplicate(ownSettings(role))
  return new Redis(target.url ?? '', ownSettings(role))
}

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
  if (/^(?:MOVED|CROSSSLOT|CLUSTERDOWN)/.test(text)) return clusterRefusal()
  return null
}

export function clusterRefusal(): ConfigError {
  return new ConfigError(
    'This is a Redis Cluster, and the layout is the default one, which needs a single server: use a standalone or Sentinel-managed Redis. Layout "cluster" is not yet supported.',
    { option: 'layout', accepted: 'a server that is not part of a cluster' },
  )
}

/** A call that is not answered yet. */
interface Call {
  deadline: number
  over: boolean
  reject(error: unknown): void
}

export class RedisLink {
  private client: Redis | null = null
  private lastError: Error | null = null
  private refused: ConfigError | null = null
  /** In the order in which they were made. */
  private calls: Call[] = []
  private watch: Timer | null = null
  private readonly waiters = new Set<(error: Error | null) => void>()

  constructor(private readonly options: LinkOptions) {}

  get ready(): boolean {
    return this.client?.status === 'ready'
  }

  /** The client for what `eval` does not cover (subscriptions, INFO). @throws CoordinationUnavailableError when closed. */
  get raw(): Redis {
    if (this.client) return this.client
    throw new CoordinationUnavailableError('unreachable')
  }

  /**
   * Connects, and goes on trying in the background.
   * @throws ConfigError if the server refuses us; CoordinationUnavailableError if it is not there within `timeoutMs`.
   */
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

  /** Ends the connection at once; calls that are not answered reject. Idempotent, never throws. */
  close(): void {
    const client = this.client
    this.client = null
    this.refused = null
    this.watch?.cancel()
    this.watch = null
    for (const call of this.calls.splice(0)) {
      if (call.over) continue
      call.over = true
      call.reject(this.unreachable())
    }
    for (const settle of [...this.waiters]) settle(this.unreachable())
    if (!client) return
    client.removeAllListeners()
    // Late errors of a connection that nobody needs any more.
    client.on('error', () => undefined)
    client.disconnect()
  }

  /** Gives the connection up and makes a new one: what was sent is not answered, and nothing says that it ever will. */
  renew(): void {
    this.client?.disconnect(true)
  }

  /** @returns the reply. @throws CoordinationUnavailableError whenever the fate of the call is unknown. */
  eval(script: Script, args: string[], timeoutMs: number): Promise<unknown> {
    const client = this.client
    if (!client || client.status !== 'ready') return Promise.reject(this.unreachable())
    return this.withinTime(this.send(client, script, args), timeoutMs)
  }

  private send(client: Redis, script: Script, args: string[]): Promise<unknown> {
    const reply = this.command(client, 'evalsha', [script.sha, ...args])
    return reply.catch((error: unknown) => {
      // Nothing has run: the server does not know the script (any more), so it is sent whole.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return this.command(client, 'eval', [script.source, ...args])
    })
  }

  private withinTime(reply: Promise<unknown>, timeoutMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call: Call = { deadline: 0, over: false, reject }
      this.limit(call, timeoutMs)
      reply.then(
        (value) => {
          call.over = true
          resolve(value)
        },
        (error: unknown) => {
          call.over = true
          reject(this.unreachable(error))
        },
      )
    })
  }

  private command(client: Redis, name: string, args: string[]): Promise<unknown> {
    return client.sendCommand(wireCommand(name, args)) as Promise<unknown>
  }

  /** Bounds a call. One timer for all of them: they come by the thousand, and hardly one is ever late. */
  private limit(call: Call, timeoutMs: number): void {
    call.deadline = this.options.clock.monotonic() + timeoutMs
    while (this.calls[0]?.over) this.calls.shift()
    this.calls.push(call)
    this.watch ??= this.options.clock.setTimeout(() => this.lookForLate(), timeoutMs, { background: true })
  }

  private lookForLate(): void {
    this.watch = null
    const now = this.options.clock.monotonic()
    const waiting = this.calls.filter((call) => !call.over)
    const late = waiting.filter((call) => call.deadline <= now)
    this.calls = waiting.filter((call) => call.deadline > now)
    for (const call of late) {
      call.over = true
      call.reject(this.unreachable())
    }
    if (late.length > 0 && this.ready) this.renew()
    const next = Math.min(...this.calls.map((call) => call.deadline))
    if (this.calls.length === 0) return
    this.watch = this.options.clock.setTimeout(() => this.lookForLate(), Math.max(1, next - now), {
      background: true,
    })
  }

  private begin(): Redis {
    const client = makeClient(this.options)
    const { logger, role } = this.options
    client.on('error', (error: Error) => {
      this.lastError = error
      this.noteRefusal(client, error)
      logger.debug({ err: error, connection: role }, 'the connection to Redis failed')
    })
    client.on('ready', () => {
      if (client !== this.client) return
      this.lastError = null
      for (const settle of [...this.waiters]) settle(null)
      this.options.onReady?.()
    })
    client.on('close', () => {
      if (client === this.client) this.options.onDown?.()
    })
    client.connect().catch((error: unknown) => {
      if (error instanceof Error) this.noteRefusal(client, error)
    })
    return client
  }

  private noteRefusal(client: Redis, error: Error): void {
    if (client !== this.client && this.client !== null) return
    if (!REFUSED.test(error.message)) return
    this.refused = asConfigError(error)
    for (const settle of [...this.waiters]) settle(this.refused)
  }

  private unreachable(cause: unknown = this.lastError): CoordinationUnavailableError {
    return new CoordinationUnavailableError('unreachable', { cause: cause ?? undefined })
  }
}
