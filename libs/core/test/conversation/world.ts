/** The shared half of the stand-in runtime (mini-runtime.ts): one chat's row, and spans that act on it. */
import type { ConversationMarker, FlowCheckpoint, HookResults } from '../../src/contracts/checkpoint-store.js'
import { LeaseLostError } from '../../src/contracts/errors.js'
import type { Message, Outgoing, Sent } from '../../src/contracts/message.js'
import type { ChatState } from '../../src/contracts/state-store.js'
import type { ConversationChange, SendRef, TurnScope } from '../../src/conversation/port.js'
import { ManualClock } from '../../src/testing/index.js'

export const KEY = 'fake%3Ashop/c1'

export interface Write {
  by: string
  how: 'write' | 'commit'
  change: ConversationChange
}

/** What all replicas share: the chat's row and who was granted it last. */
export class World {
  readonly clock = new ManualClock()
  checkpoint: FlowCheckpoint | null = null
  marker: ConversationMarker | null = null
  revision: string | null = null
  holder: string | null = null
  fence = 0
  readonly writes: Write[] = []
  readonly sent: { by: string; text: string; ref: SendRef | null }[] = []
  readonly acked: string[] = []
  readonly records = new Map<string, Message>()
  /** The queue of the chat's turns. */
  tail: Promise<unknown> = Promise.resolve()
  private messages = 0

  get said(): string[] {
    return this.sent.map((one) => one.text)
  }

  message(body: string, more: Partial<Message> = {}): Message {
    const id = `m${++this.messages}`
    const message: Message = {
      id,
      chatId: 'c1',
      from: 'c1',
      type: 'text',
      body,
      isGroup: false,
      timestamp: 0,
      raw: { secret: true },
      ...more,
    }
    this.records.set(id, message)
    return message
  }

  state(): ChatState {
    // As a store would: nothing is shared with who wrote it.
    return structuredClone({ checkpoint: this.checkpoint, marker: this.marker, revision: this.revision })
  }

  apply(by: string, how: Write['how'], change: ConversationChange, revision: string): void {
    this.writes.push({ by, how, change: structuredClone(change) })
    if (change.checkpoint !== undefined) {
      this.checkpoint =
        change.checkpoint === null ? null : structuredClone({ ...change.checkpoint, revision })
      this.revision = revision
    }
    if (change.marker !== undefined) this.marker = structuredClone(change.marker)
  }
}

/** The replica that a span belongs to. */
export interface SpanOwner {
  readonly name: string
  readonly world: World
  readonly coordinated: boolean
  readonly durable: boolean
  readonly beforeSend: ((content: Outgoing) => Promise<void>) | null
  readonly beforeWrite: ((change: ConversationChange) => Promise<void>) | null
}

export class Span implements TurnScope {
  readonly key = KEY
  readonly coordinated: boolean
  readonly durable: boolean
  readonly recordId: string | null
  readonly fence: number
  staged: ConversationChange = {}
  failure: unknown = undefined
  failed = false
  ackWithheld = false
  cut: LeaseLostError | null = null
  lost: LeaseLostError | null = null
  private readonly controller = new AbortController()
  private writes = 0

  constructor(
    readonly replica: SpanOwner,
    readonly message: Message | null,
    readonly hooks: HookResults | undefined,
    readonly state: ChatState | undefined,
    readonly servedElsewhere: boolean,
    readonly finalAttempt: boolean,
  ) {
    this.coordinated = replica.coordinated
    this.durable = replica.durable && message !== null
    this.recordId = this.durable ? (message?.id ?? null) : null
    this.fence = ++replica.world.fence
  }

  get signal(): AbortSignal {
    return this.controller.signal
  }

  assertLive(): void {
    const stopped = this.lost ?? this.cut
    if (stopped !== null) throw stopped
  }

  stop(how: 'cut' | 'lost', error: LeaseLostError): void {
    this[how] = error
    this.controller.abort(error)
  }

  async send(content: Outgoing, ref: SendRef | null): Promise<Sent> {
    this.assertLive()
    await this.replica.beforeSend?.(content)
    this.assertLive()
    const text = typeof content === 'string' ? content : (content.text ?? '')
    this.replica.world.sent.push({ by: this.replica.name, text, ref })
    return { id: `s${this.replica.world.sent.length}` }
  }

  async write(change: ConversationChange): Promise<void> {
    this.assertLive()
    try {
      await this.replica.beforeWrite?.(change)
    } catch (error) {
      if (error instanceof LeaseLostError) this.stop('lost', error)
      throw error
    }
    this.assertLive()
    this.store('write', change)
  }

  stage(change: ConversationChange): void {
    if (this.lost === null && this.cut === null) this.staged = { ...this.staged, ...change }
  }

  withholdAck(): void {
    this.ackWithheld = true
  }

  fail(error: unknown): void {
    if (!this.failed) this.failure = error
    this.failed = true
  }

  async findRecord(recordId: string): Promise<Message | null> {
    const message = this.replica.world.records.get(recordId)
    if (message === undefined) return null
    const { raw: _raw, ...kept } = message
    return kept
  }

  store(how: Write['how'], change: ConversationChange): string | null {
    const { world, name } = this.replica
    if (Object.keys(change).length > 0) world.apply(name, how, change, `${this.fence}:${++this.writes}`)
    return world.revision
  }
}
