/** Requests of the coordination port as entries of a batch: see the headers of the transitions. */
import type {
  ChatState,
  CommitRequest,
  CommitResult,
  NudgeReply,
  ReleaseRequest,
  TakeReply,
  TakeRequest,
  WaitingKey,
  WithdrawRequest,
} from '@botmesh/core'
import type { Entry, Payloads } from './batch-queue.js'
import {
  checkpointArgs,
  plainCheckpointArgs,
  effectsArgs,
  onlyCheckpoint,
  onlyInboundId,
  recordJson,
} from './effects-args.js'
import { fenceText, readDigits } from './fence-text.js'
import { escapeName } from './keys.js'
import { readCommit, readNudge, readTake } from './replies.js'

/** A chat whose note is lost may have a row: grants must look for it. */
const UNKNOWN_NOTE = '0P'

/** `n` of the ticket '<session>:<n>'. */
function numberOf(ticket: string): string {
  return ticket.slice(ticket.lastIndexOf(':') + 1)
}

/** `n` of the commit '<ticket>#<n>'. */
function nthOf(commitId: string): number {
  return Number(commitId.slice(commitId.lastIndexOf('#') + 1))
}

/** Where the number that a note begins with ends. */
function digitsOf(note: string): number {
  let at = 0
  while (at < note.length && note.charCodeAt(at) >= 48 && note.charCodeAt(at) <= 57) at += 1
  return at
}

/** Classes rather than literals with closures: the path of every message. */
class TurnEntry {
  more: string[] | undefined = undefined
  check: string | undefined = undefined
  shared = false
  quiet = false
  contended = false
  /** Set by the queue; here so that all entries have one shape. */
  resolve?(value: unknown): void
  reject?(error: unknown): void

  constructor(
    readonly chat: string,
    public token: string,
  ) {}
}

type FoundDamaged = (damaged: NonNullable<ChatState['damaged']>) => void

class TakeEntry extends TurnEntry implements Entry<TakeReply> {
  constructor(
    private readonly request: TakeRequest,
    private readonly foundDamaged?: FoundDamaged,
  ) {
    super(escapeName(request.key), '')
    const { dedupeId, read, arrival, onlyIfFree } = request
    const n = request.number ?? numberOf(request.ticket)
    if (dedupeId !== undefined && dedupeId !== '') this.check = `${this.chat} ${escapeName(dedupeId)}`
    if (arrival || onlyIfFree || read?.journal || read?.user !== undefined) this.askMore(n)
    else if (read) this.token = this.check === undefined ? `<${n}` : `?${n}`
    else this.token = this.check === undefined ? `T${n}` : `I${n}`
  }

  read(line: string, payloads: Payloads): TakeReply {
    const { key, ticket, read } = this.request
    const reply = readTake(line, payloads, key, ticket, read?.user)
    if (reply.outcome === 'granted' && reply.state?.damaged) this.foundDamaged?.(reply.state.damaged)
    return reply
  }

  private askMore(n: string): void {
    const { read, arrival, onlyIfFree } = this.request
    let flags = this.check === undefined ? '' : 'i'
    if (onlyIfFree) flags += 'f'
    if (read) flags += read.journal ? 'rj' : 'r'
    this.token = `A${n}`
    this.more = [
      flags === '' ? '-' : flags,
      arrival ? escapeName(arrival.messageId) : '',
      arrival ? String(arrival.timestamp) : '',
      arrival?.message ? recordJson(arrival.message) : '',
      read?.user === undefined ? '' : escapeName(read.user),
    ]
  }
}

/** @param foundDamaged called with what the state of the grant names as damaged. */
export function takeEntry(request: TakeRequest, foundDamaged?: FoundDamaged): Entry<TakeReply> {
  return new TakeEntry(request, foundDamaged)
}

class EndEntry extends TurnEntry implements Entry<void> {
  read(): void {
    // Whoever ended it, nothing of it is left.
  }
}

class CommitEntry extends TurnEntry implements Entry<CommitResult> {
  /** The checkpoint's revision once it is stored. */
  revision: string | null = null

  read(line: string): CommitResult {
    return readCommit(line, this.revision)
  }
}

export function releaseEntry(request: ReleaseRequest): Entry<void> {
  const { key, note = UNKNOWN_NOTE, previousHolder } = request
  const chat = escapeName(key)
  const fence = fenceText(request.fence)
  // Nothing was done under it: the holder before it stays on record.
  if (previousHolder !== undefined) {
    return new EndEntry(chat, `Z${fence} ${note} ${escapeName(previousHolder ?? '')}`)
  }
  const entry = new EndEntry(chat, note === '0-' ? `R${fence}` : `N${fence} ${note}`)
  entry.quiet = true
  return entry
}

export function withdrawEntry({ key, ticket }: WithdrawRequest): Entry<void> {
  return new EndEntry(escapeName(key), `W${numberOf(ticket)}`)
}

export function nudgeEntry({ key, ticket }: WaitingKey): Entry<NudgeReply> {
  return {
    chat: escapeName(key),
    token: `U${numberOf(ticket)}`,
    read: (line) => readNudge(line, key, ticket),
  }
}

/** @param idsPerChat beyond it, every new committed id of a chat drops its oldest. */
export function commitEntry(request: CommitRequest, idsPerChat: number): Entry<CommitResult> {
  const { key, effects, release, commitId, nth: n = nthOf(commitId) } = request
  const chat = escapeName(key)
  const fence = fenceText(request.fence)
  const before = request.note ?? UNKNOWN_NOTE
  const digits = digitsOf(before)
  const ids = readDigits(before, 0, digits) + (effects.inboundId === undefined ? 0 : 1)
  const note = `${ids}${before.slice(digits)}`
  const many = ids > idsPerChat
  // The short forms have no room for a number: they are the first commit of their turn.
  const short = release && n === 1
  if (short && onlyInboundId(effects)) {
    const entry = new CommitEntry(chat, `${many ? 'Y' : 'C'}${fence} ${note}`)
    entry.more = [`${chat} ${escapeName(effects.inboundId)}`]
    entry.quiet = !many
    return entry
  }
  if (short && !many && onlyCheckpoint(effects)) {
    const { inboundId } = effects
    const receipt = inboundId === undefined ? `#${fence}:${n}` : escapeName(inboundId)
    const plain = plainCheckpointArgs(effects, before)
    const entry = new CommitEntry(chat, plain ? `L${fence} ${note}` : `D${fence} ${ids}-`)
    entry.more = [`${chat} ${receipt}`, ...(plain ?? checkpointArgs(effects))]
    if (plain) {
      entry.quiet = true
      entry.revision = effects.checkpoint.revision
    }
    return entry
  }
  const name = `${fence}:${n}`
  const args = effectsArgs(chat, name, effects, many ? 'b' : '')
  const entry = new CommitEntry(chat, `K${fence} ${note}`)
  entry.more = [String(args.length + 1), release ? 'r' : '', ...args]
  return entry
}
