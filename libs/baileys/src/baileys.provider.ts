/**
 * WhatsApp Web through Baileys. Exclusive (P1): one replica connects, the others stand by. WhatsApp allows one
 * connection a device and throws out the older one with 440; after that this transport stays closed until it is
 * started anew (scenario 19).
 */
import {
  ConfigError,
  ProviderError,
  SendError,
  type Media,
  type Message,
  type OutgoingContent,
  type Provider,
  type ProviderCapabilities,
  type ProviderSink,
  type ProviderState,
  type SendOptions,
  type SendTarget,
  type Sent,
} from '@botmesh/core'
import { AuthState } from './auth-state.js'
import { BaileysClient } from './baileys.client.js'
import type { Library } from './library.js'
import { checkOptions, type BaileysOptions, type CheckedOptions } from './options.js'
import { downloadMedia } from './download.js'
import { quietSignal } from './quiet-signal.js'
import { jidOf } from './render-outbound.js'
import { keyOf, notConnected, sendMessage } from './send.js'
import type { SessionRecords } from './session-storage.js'

const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024

/** A message that came in: the whole of it, or these fields. */
export type MessageRef = Pick<Message, 'id' | 'chatId' | 'participant'>

/** One start, until its stop. */
interface Run {
  stopped: boolean
  sink: ProviderSink
  client?: BaileysClient
  /** Settles when starting has. */
  starting: Promise<void>
  detach(): void
}

export class BaileysProvider implements Provider {
  readonly id: string
  readonly capabilities: ProviderCapabilities = {
    exclusiveSession: true,
    buttons: false,
    list: false,
    media: true,
    groups: true,
    uncertainSends: 'skip',
    receives: [
      'text',
      'media',
      'button replies',
      'list replies',
      'reactions',
      'quotes',
      'locations',
      'contacts',
      'groups',
    ],
    sends: ['text', 'media', 'reactions', 'quotes', 'typing', 'read marks'],
  }
  private readonly options: CheckedOptions
  private run: Run | undefined
  private stopping: Promise<void> | undefined
  /** Counts the calls of stop, so that a start which waits for an earlier stop notices a later one. */
  private stops = 0
  private current: ProviderState = { status: 'closed', reason: 'not started' }

  /**
   * @param load how Baileys is loaded: it is an optional peer dependency.
   * @throws ConfigError for an unknown option or an impossible value.
   */
  constructor(
    options: BaileysOptions,
    private readonly load: () => Promise<unknown> = () => import('@whiskeysockets/baileys'),
  ) {
    this.options = checkOptions(options)
    this.id = `baileys:${this.options.session}`
  }

  get state(): ProviderState {
    return this.current
  }

  /** Loads Baileys, which takes a good part of a second. */
  async prepare(): Promise<void> {
    await this.library()
  }

  /**
   * Resolves once the first socket is being opened. Starting twice is starting once.
   * @throws ConfigError if Baileys is not installed. @throws ProviderError, StoreError for an unusable session.
   */
  async start(sink: ProviderSink, signal: AbortSignal): Promise<void> {
    const stops = this.stops
    await this.stopping
    if (this.run !== undefined) return this.run.starting
    if (stops !== this.stops) return
    const onAbort = () => void this.stop().catch((error: unknown) => sink.error(error))
    const run: Run = {
      stopped: signal.aborted,
      sink,
      starting: Promise.resolve(),
      detach: () => signal.removeEventListener('abort', onAbort),
    }
    if (run.stopped) return this.report(run, { status: 'closed', reason: 'stopped' })
    signal.addEventListener('abort', onAbort, { once: true })
    this.run = run
    this.report(run, { status: 'connecting' })
    run.starting = this.begin(run)
    return run.starting
  }

  /** Closes the socket and waits until the session is written. Idempotent; bounded by about two seconds. */
  async stop(): Promise<void> {
    this.stops += 1
    const run = this.run
    if (run === undefined) return await this.stopping
    this.run = undefined
    run.stopped = true
    run.detach()
    this.stopping = this.finish(run).finally(() => {
      this.stopping = undefined
      this.report(run, { status: 'closed', reason: 'stopped' })
    })
    await this.stopping
  }

  /**
   * Resolves once WhatsApp has acknowledged the message.
   * @throws SendError: `retryable` while not connected, `uncertain` without an acknowledgement within `ackTimeout`.
   */
  async send(to: SendTarget, content: OutgoingContent, options: SendOptions = {}): Promise<Sent> {
    options.signal?.throwIfAborted()
    return sendMessage(this.id, this.run?.client, this.options.ackTimeoutMs, to, content, options)
  }

  /** Puts an emoji on a message, replacing this account's earlier one; an empty one takes it back. @throws SendError */
  react(message: MessageRef, emoji: string, options: SendOptions = {}): Promise<Sent> {
    const { id, chatId, participant } = message
    const to = { chatId, ...(participant === undefined ? {} : { participant }) }
    return this.send(to, { replyTo: id, platform: { reaction: emoji } }, options)
  }

  /** Shows "typing…" until the next message, or for some seconds. @throws SendError */
  async typing(to: SendTarget): Promise<void> {
    await this.act((client) => client.ready?.sendPresenceUpdate('composing', jidOf(to.chatId)))
  }

  /** Shows the blue ticks for a message, unless the account's privacy settings hide them. @throws SendError */
  async markRead(message: MessageRef): Promise<void> {
    const { id, chatId, participant } = message
    await this.act((client) => client.ready?.readMessages([keyOf(client, jidOf(chatId), id, participant)]))
  }

  /**
   * Fetches and decrypts a received file, on any replica, as long as WhatsApp keeps it (about two weeks).
   * @param options.maxBytes default 64 MiB.
   * @throws ProviderError if `media` has no id of this transport, or the file is gone or larger.
   */
  async download(media: Media, options: { maxBytes?: number } = {}): Promise<Uint8Array> {
    return downloadMedia(this.id, await this.library(), media, options.maxBytes ?? MAX_DOWNLOAD_BYTES)
  }

  /** What is no message and has no acknowledgement: doing it again does no harm. */
  private async act(run: (client: BaileysClient) => Promise<void> | undefined): Promise<void> {
    const client = this.run?.client
    if (client?.ready === undefined) throw notConnected(this.id)
    try {
      await run(client)
    } catch (error) {
      throw new SendError('WhatsApp was not reached.', { provider: this.id, outcome: 'retryable' }, error)
    }
  }

  private async begin(run: Run): Promise<void> {
    let records: SessionRecords | undefined
    try {
      const library = await this.library()
      if (run.stopped) return
      records = await this.options.storage.open(this.options.session, run.sink.fence)
      if ((records.damaged?.length ?? 0) > 0) {
        run.sink.logger.warn(
          { provider: this.id, damaged: records.damaged },
          'whatsapp: parts of the session could not be read; it goes on without them',
        )
      }
      const auth = await AuthState.load(library, records, run.sink.logger, this.id)
      if (run.stopped) return await records.close()
      run.client = new BaileysClient(this.id, this.options, library, records, auth, this.tracked(run))
      run.client.connect()
    } catch (error) {
      await records?.close()
      if (this.run === run) {
        this.run = undefined
        run.detach()
      }
      const final = error instanceof ConfigError || (error instanceof ProviderError && error.details.final)
      this.report(run, { status: 'closed', reason: 'start-failed', ...(final ? { final } : {}) })
      throw error
    }
  }

  private async finish(run: Run): Promise<void> {
    // Its failure was given to the caller of start.
    await run.starting.catch(() => {})
    await run.client?.stop()
  }

  /** The sink as the client sees it: its states are this provider's, and none comes after the stop. */
  private tracked(run: Run): ProviderSink {
    const { sink } = run
    return {
      message: (message) => sink.message(message),
      state: (state) => {
        if (!run.stopped) this.report(run, state)
      },
      pairing: (pairing) => sink.pairing(pairing),
      error: (error) => sink.error(error),
      logger: sink.logger,
      clock: sink.clock,
      random: sink.random,
    }
  }

  private report(run: Run, state: ProviderState): void {
    // Connecting is told once, by whoever is first.
    if (state.status === 'connecting' && this.current.status === 'connecting') return
    this.current = state
    run.sink.state(state)
  }

  private async library(): Promise<Library> {
    try {
      const library = (await this.load()) as Library
      quietSignal()
      return library
    } catch (error) {
      throw new ConfigError(
        'BaileysProvider needs the package @whiskeysockets/baileys, which is not installed: npm install @whiskeysockets/baileys@7.0.0-rc14',
        {
          option: '@whiskeysockets/baileys',
          accepted: 'version 7.0.0-rc14 installed beside @botmesh/baileys',
        },
        error,
      )
    }
  }
}
