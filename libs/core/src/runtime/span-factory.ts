/**
 * Opens spans: decides what must be read before a turn's work (T7, K3), and puts together what the work acts
 * through. A copy of a conversation in memory is used without reading only if the grant proves it current.
 * A turn for the chat's oldest record that finds none may find an appointment that is over instead (ADR 8).
 */
import type { Clock } from '../contracts/clock.js'
import type { Turn } from '../contracts/coordinator.js'
import { LeaseLostError, StoreError } from '../contracts/errors.js'
import type { JournalRecord } from '../contracts/journal.js'
import type { Message } from '../contracts/message.js'
import type { OutboxEntry } from '../contracts/outbox.js'
import type { ChatState, Damage } from '../contracts/state-store.js'
import type { Store } from '../contracts/store.js'
import { parseChatKey } from '../kernel/chat-key.js'
import type { ConversationEngine } from '../conversation/port.js'
import { waitTimerId } from '../kernel/wait-timer.js'
import { isStateStore, PlainAccess, SeparateAccess, SharedAccess, type ChatAccess } from './chat-access.js'
import type { LocalTurn } from './local-turn.js'
import type { SendGate } from './send-gate.js'
import { SpanOutbox, timerSends } from './span-outbox.js'
import { once, unreadableEntries } from './span-init.js'
import { Span } from './span.js'
import type { Work } from './work.js'

/** A granted turn, or the local stand-in for one. */
export type GrantedTurn = Turn | LocalTurn

export interface SpanFactoryOptions {
  provider: string
  store: Store
  engine: ConversationEngine
  gate: SendGate
  clock: Clock
  coordinated: boolean
  /** True if the coordinator's backend holds this store's data too. */
  shared: boolean
  journal: boolean
  outbox: boolean
  /** How long an appointment must be over: until then the timer of whoever waits comes first. */
  graceMs: number
  resendUncertain: boolean
  /** False: the bot has no flows and conversations, so nothing needs to be read for them. */
  readsChats: boolean
  /** True for the present and former incarnations of this coordinator. */
  isOwn: (incarnation: string) => boolean
  /** Without coordination: a number that grows, across restarts too. */
  localFence: () => number
  report: (error: unknown) => void
}

export interface Opened {
  state: ChatState | undefined
  record: JournalRecord | null
  /** There is no record, and the chat's appointment is over. */
  overdue?: boolean
  /** Of a timer: the chat's sends, where another replica may have begun to act for it. */
  sends?: OutboxEntry[] | undefined
}

/** Pause between repetitions of a commit whose reply was lost. */
const COMMIT_RETRY_MS = 100

export class SpanFactory {
  /** Spans at work now: what a drain cuts. */
  readonly live = new Set<Span>()

  constructor(private readonly options: SpanFactoryOptions) {}

  /** True while a span of this chat is open. */
  serves(key: string): boolean {
    for (const span of this.live) if (span.key === key) return true
    return false
  }

  access(key: string, turn: GrantedTurn | null): ChatAccess {
    const { store, shared, clock } = this.options
    if (turn === null) return new PlainAccess(key, null, store)
    if (shared && !('local' in turn)) return new SharedAccess(turn, store)
    if (isStateStore(store)) return new SeparateAccess(turn, store, clock, COMMIT_RETRY_MS)
    return new PlainAccess(key, turn, store)
  }

  /** Said at once where nothing has to be read: a message of a bot alone, whose copy is the truth (B1). */
  unread(key: string, turn: GrantedTurn | null, work: Work): Opened | undefined {
    if (turn !== null || work.kind !== 'message') return undefined
    const { engine } = this.options
    return engine.persists && engine.localRevision(key) === undefined ? undefined : NOTHING_READ
  }

  /** What the chat's work starts from, `nothing` if there is none for this turn, or `again` if it was what could not be
   * read, and is out of the way now. */
  async read(
    key: string,
    turn: GrantedTurn | null,
    access: ChatAccess,
    work: Work,
  ): Promise<Opened | 'nothing' | 'again'> {
    if (work.kind === 'timer') return this.readForTimer(key, turn, access)
    const { journal, graceMs } = this.options
    if (work.kind === 'message' && !journal && turn !== null && (await access.isCommitted(work.message.id))) {
      return 'nothing'
    }
    const state = await this.state(key, turn, access)
    if (state?.damaged !== undefined && (await this.setAside(key, access, state.damaged))) return 'again'
    if (!journal) return state === undefined ? NOTHING_READ : { state, record: null }
    const record = state?.record ?? null
    if (record !== null) return { state, record }
    const dueInMs = work.kind === 'wake' ? (state?.dueInMs ?? null) : null
    return dueInMs !== null && dueInMs <= -graceMs ? { state, record, overdue: true } : 'nothing'
  }

  span(
    key: string,
    turn: GrantedTurn | null,
    access: ChatAccess,
    work: Work,
    opened: Opened,
    finalAttempt: boolean,
  ): Span {
    const { gate, coordinated, engine } = this.options
    const { state, record } = opened
    const message = messageOf(work, record)
    const local = engine.localRevision(key)
    const span: Span = new Span({
      key,
      target: message === null ? targetOf(key) : targetOfMessage(message),
      message,
      record,
      state,
      revision: state === undefined ? (local ?? null) : state.revision,
      turn,
      coordinated,
      durable: record !== null,
      servedElsewhere: turn !== null && !this.servedHere(turn),
      finalAttempt,
      appointments: this.options.journal,
      epoch: turn === null ? once(this.options.localFence) : () => turn.fence,
      access,
      gate,
      outbox: this.outboxFor(work, opened, local ?? null),
      findRecord: (chat, recordId) => this.findRecord(chat, recordId),
      ended: () => this.live.delete(span),
    })
    // Where the store has not moved it aside: overwritten, so that it is reported once.
    for (const { what } of state?.damaged ?? []) {
      if (what === 'checkpoint' || what === 'marker') span.stage({ [what]: null })
    }
    this.live.add(span)
    return span
  }

  /** A message of one of the chats by its record. */
  private async findRecord(key: string, recordId: string) {
    return (await this.options.store.journal?.find(key, recordId))?.message ?? null
  }

  private async state(
    key: string,
    turn: GrantedTurn | null,
    access: ChatAccess,
  ): Promise<ChatState | undefined> {
    const { engine, journal, readsChats } = this.options
    const local = engine.localRevision(key)
    if (turn === null) {
      // One process: its copy is the truth, and what it never stored is not there.
      return local === undefined && engine.persists ? access.open({}) : undefined
    }
    if (!('local' in turn) && turn.state !== undefined) return turn.state
    if (journal) return access.open({ journal: true })
    if (local === undefined && !readsChats) return undefined
    return local !== undefined && this.proves(turn, local) ? undefined : access.open({})
  }

  /** T7: does the grant itself say that the copy with this confirmed revision is current? */
  private proves(turn: GrantedTurn, local: string | null): boolean {
    if (!this.servedHere(turn)) return false
    const known = this.revisionAtGrant(turn)
    return known === undefined || known === local
  }

  /** A backend that has turns only knows of no row: what it says of one is not about this store's. */
  private revisionAtGrant(turn: GrantedTurn): string | null | undefined {
    return 'local' in turn || !this.options.shared ? undefined : turn.revision
  }

  private servedHere(turn: GrantedTurn): boolean {
    if ('local' in turn) return true
    return turn.previousHolder !== null && this.options.isOwn(turn.previousHolder)
  }

  /** T5: a timer of a copy that is not current any more does nothing; the copy is dropped. */
  private async readForTimer(
    key: string,
    turn: GrantedTurn | null,
    access: ChatAccess,
  ): Promise<Opened | 'nothing'> {
    const { engine, outbox } = this.options
    const local = engine.localRevision(key)
    if (local === undefined) return 'nothing'
    if (turn === null || this.proves(turn, local)) return NOTHING_READ
    const known = this.revisionAtGrant(turn)
    const here = this.servedHere(turn)
    // Somebody else may have begun to act for this very timer, and died of it: the outbox knows what it sent (D2).
    const asks = known === undefined || (known === local && outbox && !here)
    const state = asks ? await access.open({ journal: outbox }) : undefined
    const revision = state === undefined ? known : state.revision
    if (revision === local && (local !== null || here)) return { ...NOTHING_READ, sends: state?.outbox }
    engine.drop(key, new LeaseLostError(key, 'superseded', { fence: turn.fence }), turn.fence)
    return 'nothing'
  }

  private outboxFor(work: Work, opened: Opened, local: string | null): SpanOutbox | null {
    const { store, outbox, gate, clock, provider, resendUncertain, report } = this.options
    if (!outbox || store.outbox === undefined) return null
    const timer = timerOf(work, opened, local)
    const sends = [...(opened.sends ?? opened.state?.outbox ?? []), ...unreadableEntries(opened.state)]
    return new SpanOutbox({
      // A timer meets its own sends only: others belong to a record that waits.
      known: timer === null ? sends : sends.filter(({ key }) => key.startsWith(timerSends(timer))),
      timer,
      outbox: store.outbox,
      provider,
      gate,
      clock,
      resendUncertain,
      report,
    })
  }

  /**
   * Reports what cannot be read and moves it out of the way, so that the chat goes on: a record to the dead letters.
   * @returns true if there was such a record: what comes after it is worked on under another turn.
   */
  private async setAside(key: string, access: ChatAccess, damaged: readonly Damage[]): Promise<boolean> {
    const { store, report } = this.options
    let again = false
    for (const { what, key: place, error } of damaged) {
      let put = 'left out'
      if (what === 'record') {
        const id = place.slice(key.length + 1)
        await store.journal?.fail(key, id, access.fence, `unreadable: ${error}`, null)
        put = 'put among the dead letters'
        again = true
      } else if (what === 'checkpoint' || what === 'marker') {
        const aside = await store.setAside?.(key, what)
        put = aside === undefined ? 'removed with the next commit' : `moved aside (${aside})`
      }
      report(
        new StoreError(`A stored ${what} of "${place}" cannot be read and is ${put}: ${error}`, {
          store: store.kind,
          operation: 'open',
          key: place,
        }),
      )
    }
    return again
  }
}

/** The record's; as it came, with the transport's own object, if it is the very one that this turn was taken for. */
function messageOf(work: Work, record: JournalRecord | null): Message | null {
  const arrived = work.kind === 'message' ? work.message : null
  return record === null || record.id === arrived?.id ? arrived : record.message
}

/** What names the sends of a span without a record. */
function timerOf(work: Work, { state, overdue }: Opened, local: string | null) {
  if (work.kind === 'timer') return { revision: local, id: work.id }
  const checkpoint = overdue === true ? (state?.checkpoint ?? null) : null
  // The name that the replica which waits would have used, too.
  if (checkpoint === null) return null
  return {
    revision: checkpoint.revision,
    id: waitTimerId(checkpoint.visit, checkpoint.wait?.question ?? 0),
  }
}

const NOTHING_READ: Opened = { state: undefined, record: null }

function targetOfMessage(message: { chatId: string; participant?: string }) {
  return message.participant === undefined
    ? { chatId: message.chatId }
    : { chatId: message.chatId, participant: message.participant }
}

function targetOf(key: string) {
  const address = parseChatKey(key)
  return targetOfMessage(address ?? { chatId: key })
}
