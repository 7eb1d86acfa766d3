/**
 * One connection to Discord's gateway, from its opening to its end, on discord.js's own shard: hello, heartbeats,
 * identify or resume, and noticing a connection that is dead without saying so.
 *
 * discord.js would connect again by itself, half a second later and whatever happened meanwhile; a socket that is
 * still being opened would outlive its `destroy`. Here a connection that ends has ended for good, and says how:
 * who owns it decides what comes next (scenario 20). States: opening → ready → over; `shut` leads to over from each.
 */
import {
  Encoding,
  WebSocketShard,
  WebSocketShardDestroyRecovery,
  WebSocketShardEvents,
  type SessionInfo,
} from '@discordjs/ws'
import type { Clock } from '@botmesh/core'

export interface ConnectionEnd {
  /** Discord's code, if it was Discord that closed. */
  code: number | undefined
  /** Asked for by Discord's protocol, or by what this side noticed. `none`: see `code`. */
  recover: 'resume' | 'identify' | 'none'
  reason: string
}

export interface ConnectionParts {
  url: string
  token: string
  intents: number
  /** Resumed if given; follows what Discord says. */
  session: SessionInfo | null
  clock: Clock
  /** The session is there: its events come. */
  onReady(how: 'identified' | 'resumed'): void
  onDispatch(type: unknown, data: unknown, sequence: number): void
  onDebug(text: string): void
}

/** Discord invalidates the session of a connection that is closed with 1000; with this one it waits for a resume. */
const KEEP_SESSION = 4200
const FORGET_SESSION = 1000
const CLOSE_GRACE_MS = 500
const HELLO_MS = 20_000
const READY_MS = 20_000
const { Resume, Reconnect } = WebSocketShardDestroyRecovery

type Options = ConstructorParameters<typeof WebSocketShard>[0]['options']
type DestroyOptions = Parameters<WebSocketShard['destroy']>[0] & object

export class GatewayConnection extends WebSocketShard {
  /** Resolves when the socket is closed and nothing of it runs. */
  readonly finished: Promise<ConnectionEnd>
  private readonly state: { session: SessionInfo | null; over: boolean; code: number | undefined }
  private finish: (end: ConnectionEnd) => void = () => {}

  constructor(private readonly parts: ConnectionParts) {
    const state = { session: parts.session, over: false, code: undefined as number | undefined }
    super(
      {
        options: optionsOf(parts),
        // A connection that was shut before it began stops here, before its socket is made.
        retrieveSessionInfo: () => (state.over ? new Promise<never>(() => {}) : state.session),
        // Forgetting is for the owner to decide.
        updateSessionInfo: (_shard, session) => {
          if (session !== null) state.session = withUsableUrl(session, parts.url)
        },
        waitForIdentify: () => Promise.resolve(),
      },
      0,
    )
    this.state = state
    this.finished = new Promise((resolve) => (this.finish = resolve))
    this.guardMessages()
    this.on(WebSocketShardEvents.Dispatch, ({ data }) => {
      if (!state.over) parts.onDispatch(data.t, data.d, data.s)
    })
    this.on(WebSocketShardEvents.Ready, () => {
      if (!state.over) parts.onReady('identified')
    })
    this.on(WebSocketShardEvents.Resumed, () => {
      if (!state.over) parts.onReady('resumed')
    })
    this.on(WebSocketShardEvents.Closed, ({ code }) => (state.code ??= code))
    // Its text says what `Closed` says too; without a listener it would throw.
    this.on(WebSocketShardEvents.Error, ({ error }) => parts.onDebug(error.message))
    this.on(WebSocketShardEvents.Debug, ({ message }) => parts.onDebug(message))
  }

  /** The session as Discord last told of it. */
  get session(): SessionInfo | null {
    return this.state.session
  }

  /** Opens the socket. */
  open(): void {
    // Resolves at ready, or never: how it ends is told by `finished`.
    this.connect().catch((error: unknown) => this.parts.onDebug(String(error)))
  }

  /** Ends the connection at once. @param session whether Discord should wait for somebody who resumes it. */
  async shut(session: 'keep' | 'forget'): Promise<void> {
    await this.destroy({
      code: session === 'keep' ? KEEP_SESSION : FORGET_SESSION,
      reason: 'stopped',
    })
    await this.finished
  }

  override async destroy(options: DestroyOptions = {}): Promise<void> {
    const { state } = this
    if (state.over) return
    state.over = true
    const { recover, reason = 'closed', code } = options
    // Discord's close, if it was one, has been told as an event before discord.js comes here.
    const closedBy = state.code
    const socket = this.socket()
    const grace = this.parts.clock.setTimeout(() => socket?.terminate(), CLOSE_GRACE_MS)
    const closing = recover === Resume ? KEEP_SESSION : code
    try {
      await super.destroy({ reason, ...(closing === undefined ? {} : { code: closing }) })
    } catch (error) {
      // Nobody waits for it here: the connection ends all the same.
      this.parts.onDebug(`closing failed: ${String(error)}`)
    } finally {
      grace.cancel()
      // One that is still being opened is not closed by discord.js; its failure then is of our making.
      if (socket !== null) socket.onerror = () => {}
      socket?.terminate()
      this.finish({
        code: closedBy,
        recover: recover === Resume ? 'resume' : recover === Reconnect ? 'identify' : 'none',
        reason,
      })
    }
  }

  /**
   * discord.js takes what Discord sends on trust and lets the promise of each message go: one that is malformed would
   * end the process as an unhandled rejection.
   */
  private guardMessages(): void {
    const shard = this as unknown as { onMessage: (data: unknown, isBinary: boolean) => Promise<void> }
    const handle = shard.onMessage.bind(this)
    shard.onMessage = (data, isBinary) =>
      handle(data, isBinary).catch((error: unknown) =>
        this.parts.onDebug(`a message of the gateway could not be read: ${String(error)}`),
      )
  }

  /** The WebSocket, which discord.js keeps to itself. */
  private socket(): { terminate(): void; onerror: unknown } | null {
    return (this as unknown as { connection: { terminate(): void; onerror: unknown } | null }).connection
  }
}

/** Where to resume, if Discord names a place; else where the connection was made. */
function withUsableUrl(session: SessionInfo, url: string): SessionInfo {
  const { resumeURL } = session
  const usable = URL.canParse(resumeURL) && /^wss?:$/.test(new URL(resumeURL).protocol)
  return usable ? session : { ...session, resumeURL: url }
}

function optionsOf({ url, token, intents }: ConnectionParts): Options {
  return {
    token,
    // oxlint-disable-next-line no-unsafe-enum-assignment -- a set of its bits, which the type of one stands for
    intents,
    compression: null,
    encoding: Encoding.JSON,
    gatewayInformation: {
      url,
      shards: 1,
      session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
    },
    handshakeTimeout: HELLO_MS,
    helloTimeout: HELLO_MS,
    readyTimeout: READY_MS,
    identifyProperties: { browser: 'botmesh', device: 'botmesh', os: process.platform },
    initialPresence: null,
    largeThreshold: null,
    shardCount: 1,
    version: '10',
  }
}
