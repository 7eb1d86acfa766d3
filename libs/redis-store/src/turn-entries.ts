/** Requests of the coordination port as entries of a batch: see the headers of the transitions. */
import type {
  CommitRequest,
  CommitResult,
  NudgeReply,
  ReleaseRequest,
  TakeReply,
  TakeRequest,
  WaitingKey,
  WithdrawRequest,
} from '@botmesh/core'
import type { Entry } from './batch-queue.js'
import { effectsArgs, onlyInboundId, recordJson } from './effects-args.js'
import { escapeName } from './keys.js'
import { readCommit, readNudge, readTake } from './replies.js'

/** A chat whose note is lost may have a row: grants must look for it. */
const UNKNOWN_NOTE = '0P'

/** `n` of the ticket '<session>:<n>'. */
function numberOf(ticket: string): string {
  return ticket.slice(ticket.lastIndexOf(':') + 1)
}

export function takeEntry(request: TakeRequest): Entry<TakeReply> {
  const { key, ticket, dedupeId, read, arrival } = request
  const chat = escapeName(key)
  const n = numberOf(ticket)
  const entry: Entry<TakeReply> = {
    chat,
    token: '',
    read: (line, payloads) => readTake(line, payloads, key, ticket, read?.user),
  }
  if (dedupeId !== undefined && dedupeId !== '') entry.check = `${chat} ${escapeName(dedupeId)}`
  if (!read && !arrival && !request.onlyIfFree) {
    entry.token = entry.check === undefined ? `T${n}` : `I${n}`
    return entry
  }
  entry.token = `A${n}`
  let flags = entry.check === undefined ? '' : 'i'
  if (request.onlyIfFree) flags += 'f'
  if (read) flags += read.journal ? 'rj' : 'r'
  entry.more = [
    flags === '' ? '-' : flags,
    arrival ? escapeName(arrival.messageId) : '',
    arrival ? String(arrival.timestamp) : '',
    arrival?.message ? recordJson(arrival.message) : '',
    read?.user === undefined ? '' : escapeName(read.user),
  ]
  return entry
}

function ended(): void {
  // Whoever ended it, nothing of it is left.
}

export function releaseEntry({ key, fence, note = UNKNOWN_NOTE }: ReleaseRequest): Entry<void> {
  return { chat: escapeName(key), token: note === '0-' ? `R${fence}` : `N${fence} ${note}`, read: ended }
}

export function withdrawEntry({ key, ticket }: WithdrawRequest): Entry<void> {
  return { chat: escapeName(key), token: `W${numberOf(ticket)}`, read: ended }
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
  const { key, fence, effects, release, commitId } = request
  const chat = escapeName(key)
  const before = request.note ?? UNKNOWN_NOTE
  const ids = Number.parseInt(before, 10) + (effects.inboundId === undefined ? 0 : 1)
  const note = `${ids}${before.endsWith('P') ? 'P' : '-'}`
  const many = ids > idsPerChat
  if (release && onlyInboundId(effects)) {
    return {
      chat,
      token: `${many ? 'Y' : 'C'}${fence} ${note}`,
      more: [`${chat} ${escapeName(effects.inboundId)}`],
      // No row, no revision; with a row unknown to this turn: none that it could go on from.
      read: (line) => readCommit(line, null),
    }
  }
  const name = `${fence}:${commitId.slice(commitId.lastIndexOf('#') + 1)}`
  const args = effectsArgs(chat, name, effects, many ? 'b' : '')
  return {
    chat,
    token: `K${fence} ${note}`,
    more: [String(args.length + 1), release ? 'r' : '', ...args],
    read: (line) => readCommit(line),
  }
}
