/**
 * What one span has sent and will send, with durability (D2): the intent is written under the turn, as soon as the send
 * is the next of its chat, then it is made, then it is noted as sent, failed or uncertain, and the turn is released only
 * in the commit that comes after. What only waited for others when its process died was never tried, and is not marked.
 * A repeated step finds its earlier sends here by key and content, and does not make them again.
 *
 * A send whose fate is unknown (the process died between intent and note, or the platform's answer is missing) is
 * left alone unless the transport says `uncertainSends: 'resend'`: at most one copy is the default (scenario 16).
 */
import { createHash } from 'node:crypto'
import type { Clock, Timer } from '../contracts/clock.js'
import { ConfigError, LeaseLostError, ProviderNotLeaderError, SendError } from '../contracts/errors.js'
import type { OutgoingContent, Sent } from '../contracts/message.js'
import type { Outbox, OutboxEntry } from '../contracts/outbox.js'
import type { SendTarget } from '../contracts/provider.js'
import type { Effects } from '../contracts/state-store.js'
import { encodedPart } from '../kernel/chat-key.js'
import type { SendRef } from '../conversation/port.js'
import type { SendGate, SendGuard } from './send-gate.js'

/** The span whose sends these are. */
interface SendingSpan {
  readonly key: string
  readonly recordId: string | null
  readonly live: boolean
  guard(): SendGuard
  writeEntries(effects: Effects): Promise<void>
}

export interface SpanOutboxInit {
  /** Entries that the opening read brought. */
  known: readonly OutboxEntry[]
  /** Of a timer: what names its sends instead of a record. */
  timer: { revision: string | null; id: string } | null
  outbox: Outbox
  gate: SendGate
  clock: Clock
  provider: string
  resendUncertain: boolean
  report: (error: unknown) => void
}

/** What the names of a timer's sends begin with (D2). */
export function timerSends({ revision, id }: { revision: string | null; id: string }): string {
  return `t:${revision ?? ''}/${id}/`
}

/** Later than this after a send its outcome is noted by a call of its own, if no commit has carried it by then. */
const NOTE_AFTER_MS = 100

export class SpanOutbox {
  /** Known before and not met again yet. */
  private readonly open: OutboxEntry[]
  private readonly written: OutboxEntry[] = []
  /** Outcomes that no write has carried yet. */
  private readonly unnoted = new Map<string, OutboxEntry>()
  private ordinal = 0
  private timer: Timer | undefined
  /** The commit that ends the span forgets its sends: nobody repeats them. */
  private closed = false

  constructor(private readonly init: SpanOutboxInit) {
    this.open = [...init.known]
  }

  async send(
    span: SendingSpan,
    target: SendTarget,
    content: OutgoingContent,
    ref: SendRef | null,
  ): Promise<Sent> {
    const hash = hashOf(target, content)
    const entry = this.claim(span, ref, hash)
    if (entry.status === 'sent') return entry.sent ?? { id: '' }
    if ((entry.status === 'uncertain' || entry.status === 'intended') && !this.init.resendUncertain) {
      return this.leaveAlone(span, entry)
    }
    Object.assign(entry, { hash, content: storable(content) })
    return this.deliver(span, target, content, entry)
  }

  /** Outbox effects of the commit that ends the span. @param kept records that a kept answer still points to. */
  finalEffects(kept: ReadonlySet<string>): Effects {
    this.timer?.cancel()
    this.closed = true
    const still = (entry: OutboxEntry) => entry.status === 'uncertain' || kept.has(recordOf(entry.key) ?? '')
    const outbox = this.takeUnnoted().filter(still)
    const isOver = (entry: OutboxEntry) => !kept.has(recordOf(entry.key) ?? '')
    const forget = [...this.open, ...this.written.filter((entry) => entry.status !== 'uncertain')]
      .filter(isOver)
      .map((entry) => entry.key)
    return {
      ...(outbox.length > 0 ? { outbox } : {}),
      ...(forget.length > 0 ? { forget } : {}),
    }
  }

  /** Notes outcomes without a commit: the turn was lost or the attempt failed. Facts need no fence. */
  async noteOutcomes(chatKey: string): Promise<void> {
    this.timer?.cancel()
    const notes = this.takeUnnoted().map((entry) => this.note(chatKey, entry))
    await Promise.all(notes)
  }

  /** The entry of an earlier attempt, or a new one that is not written yet (`failed`: nothing was sent). */
  private claim(span: SendingSpan, ref: SendRef | null, hash: string): OutboxEntry {
    const record = ref?.recordId ?? span.recordId
    const { timer } = this.init
    const own =
      record !== null ? `r:${encodedPart(record)}/` : timerSends(timer ?? { revision: null, id: '' })
    const key =
      ref !== null && record !== null ? `${own}${encodedPart(ref.step)}/${ref.visit}/${ref.ordinal}` : null
    // Handlers have no names for their sends: those of one record are matched by content, in order.
    const index = this.open.findIndex((entry) =>
      key !== null
        ? entry.key === key && entry.hash === hash
        : entry.key.startsWith(own) && entry.hash === hash,
    )
    if (index >= 0) {
      const [found] = this.open.splice(index, 1)
      const copy = { ...(found as OutboxEntry) }
      this.written.push(copy)
      return copy
    }
    const named = key ?? this.unnamed(own)
    const fresh: OutboxEntry = { v: 1, key: named, hash, content: {}, status: 'failed' }
    this.written.push(fresh)
    return fresh
  }

  /** An earlier attempt may have sent this: it is not made again, and stays in the store as uncertain. */
  private leaveAlone(span: SendingSpan, entry: OutboxEntry): Sent {
    if (entry.status === 'intended') {
      entry.status = 'uncertain'
      this.unnoted.set(entry.key, entry)
      this.init.report(
        new SendError(
          `Whether "${entry.key}" of chat "${span.key}" was delivered is unknown: an earlier attempt ended in the middle of it. It is not sent again.`,
          { provider: this.init.provider, outcome: 'uncertain' },
        ),
      )
    }
    return entry.sent ?? { id: '' }
  }

  private unnamed(own: string): string {
    for (;;) {
      const key = own.startsWith('t:') ? `${own}${this.ordinal++}` : `${own}-/0/${this.ordinal++}`
      if (!this.init.known.some((entry) => entry.key === key)) return key
    }
  }

  private async deliver(
    span: SendingSpan,
    target: SendTarget,
    content: OutgoingContent,
    entry: OutboxEntry,
  ): Promise<Sent> {
    let begun = false
    const begin = async (): Promise<void> => {
      if (this.closed) return
      const status = 'intended'
      await span.writeEntries({ outbox: [...this.takeUnnoted(), { ...entry, status }] })
      Object.assign(entry, { status })
      begun = true
    }
    const guard = { ...span.guard(), idempotencyKey: `${span.key}#${entry.key}`, begin }
    try {
      const sent = await this.init.gate.deliver(target, content, guard)
      Object.assign(entry, { status: 'sent', sent })
      return sent
    } catch (error) {
      if (begun) Object.assign(entry, { status: fateOf(error), error: textOf(error) })
      throw error
    } finally {
      if (begun) {
        this.unnoted.set(entry.key, entry)
        if (span.live) this.noteSoon(span.key)
        else await this.noteOutcomes(span.key)
      }
    }
  }

  private noteSoon(chatKey: string): void {
    this.timer ??= this.init.clock.setTimeout(
      () => {
        this.timer = undefined
        void this.noteOutcomes(chatKey)
      },
      NOTE_AFTER_MS,
      { background: true },
    )
  }

  private takeUnnoted(): OutboxEntry[] {
    const entries = [...this.unnoted.values()]
    this.unnoted.clear()
    return entries
  }

  private async note(chatKey: string, entry: OutboxEntry): Promise<void> {
    try {
      if (entry.status === 'sent') {
        await this.init.outbox.settle(chatKey, entry.key, { status: 'sent', sent: entry.sent ?? { id: '' } })
      } else if (entry.status !== 'intended') {
        await this.init.outbox.settle(chatKey, entry.key, { status: entry.status, error: entry.error ?? '' })
      }
    } catch (error) {
      // The entry stays `intended`: treated as uncertain by whoever repeats the work.
      this.init.report(error)
    }
  }
}

function recordOf(key: string): string | null {
  const match = /^r:([^/]*)\//.exec(key)
  if (match?.[1] === undefined) return null
  try {
    return decodeURIComponent(match[1])
  } catch {
    return null // Not a key of ours: a broken writer's entry belongs to no record, and is forgotten.
  }
}

function hashOf(target: SendTarget, content: OutgoingContent): string {
  const hash = createHash('sha256').update(JSON.stringify([target, storable(content)]))
  if (content.media?.data !== undefined) hash.update(content.media.data)
  return hash.digest('base64url')
}

/** Without bytes: the entry says what was sent, it is not sent from. */
function storable(content: OutgoingContent): OutgoingContent {
  if (content.media?.data === undefined) return content
  const { data: _data, ...media } = content.media
  return { ...content, media }
}

/** An error that the transport did not classify may have come after the request was written. */
function fateOf(error: unknown): 'failed' | 'uncertain' {
  if (error instanceof SendError) return error.outcome === 'uncertain' ? 'uncertain' : 'failed'
  const neverTried =
    error instanceof LeaseLostError || error instanceof ProviderNotLeaderError || error instanceof ConfigError
  return neverTried ? 'failed' : 'uncertain'
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
