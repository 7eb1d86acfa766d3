/** Reads the reply lines of the batch script: what each transition's header says it answers. */
import type { ChatState, CommitResult, Grant, NudgeReply, OutboxEntry, TakeReply } from '@botmesh/core'
import type { Payloads } from './batch-queue.js'
import { readDigits } from './fence-text.js'
import { unescapeName } from './keys.js'
import {
  readCheckpoint,
  readMarker,
  readOutboxEntry,
  readRecord,
  readUser,
  type Damage,
} from './stored-values.js'

/** What a grant's line says besides the grant. */
interface GrantLine {
  grant: Grant
  /** What arrived and what was read, as letters. */
  marks: string
}

/**
 * '<fence> <revision>|<last fence> <note> <previous holder>[|<rest>]' from `from` on. `note` is the backend's own
 * memory of the chat, handed back with the release or commit.
 */
export function readGrant(line: string, from: number, key: string, ticket: string): GrantLine {
  const gap = line.indexOf(' ', from)
  const bar = line.indexOf('|', gap)
  const end = line.indexOf('|', bar + 1)
  const last = end < 0 ? line.length : end
  let revision = bar === gap + 1 ? null : unescapeName(line.slice(gap + 1, bar))
  let previousHolder: string | null = null
  let note = '0-'
  if (last > bar + 1) {
    const noteAt = line.indexOf(' ', bar + 1) + 1
    const holderAt = line.indexOf(' ', noteAt) + 1
    note = line.slice(noteAt, holderAt - 1)
    // 'S<revision>': all that is known of the row stands in the note.
    const simple = revision === null ? note.indexOf('S') : -1
    if (simple > 0) revision = unescapeName(note.slice(simple + 1))
    if (holderAt < last) previousHolder = unescapeName(line.slice(holderAt, last))
  } else if (revision !== null) {
    note = '0P'
  }
  const fence = readDigits(line, from, gap)
  return {
    grant: { key, ticket, fence, previousHolder, revision, note },
    marks: end < 0 ? '' : line.slice(end + 1),
  }
}

function arrivalOf(marks: string): { arrival?: 'recorded' | 'duplicate' } {
  const mark = marks.charCodeAt(0)
  if (mark === 43) return { arrival: 'recorded' }
  return mark === 61 ? { arrival: 'duplicate' } : {}
}

/** What `read_state` announced: letters in order, with their payloads. */
export function readState(
  key: string,
  revision: string | null,
  marks: string,
  payloads: Payloads,
  user?: string,
): ChatState {
  const state: ChatState = { checkpoint: null, marker: null, revision }
  const damaged: Damage[] = []
  const next = (): string => payloads.values[payloads.at++] ?? ''
  for (let at = 0; at < marks.length; at += 1) {
    switch (marks.charAt(at)) {
      case 'c':
        state.checkpoint = readCheckpoint(key, next(), damaged)
        break
      case 'w':
        state.dueInMs = Number(next())
        break
      case 'm':
        state.marker = readMarker(key, next(), damaged)
        break
      case 'J':
        state.record = null
        break
      case 'j':
        state.record = readRecord(key, [next(), next(), next(), next()], damaged)
        break
      case 'o': {
        const digits = /^\d+/.exec(marks.slice(at + 1))?.[0] ?? '0'
        at += digits.length
        state.outbox = readOutbox(key, Number(digits) / 2, next, damaged)
        break
      }
      case 'u':
        state.user = readUserState(user ?? '', next(), next(), damaged)
        break
    }
  }
  if (damaged.length > 0) state.damaged = damaged
  return state
}

function readUserState(user: string, json: string, revision: string, damaged: Damage[]): ChatState['user'] {
  const data = json === '' ? null : readUser(user, json, damaged)
  return data ? { data, revision } : null
}

function readOutbox(chat: string, count: number, next: () => string, damaged: Damage[]): OutboxEntry[] {
  const entries: OutboxEntry[] = []
  for (let n = 0; n < count; n += 1) {
    const [key, value] = [next(), next()]
    const entry = readOutboxEntry(`${chat} ${unescapeName(key)}`, value, damaged)
    if (entry) entries.push(entry)
  }
  return entries
}

export function readTake(
  line: string,
  payloads: Payloads,
  key: string,
  ticket: string,
  user?: string,
): TakeReply {
  switch (line.charCodeAt(0)) {
    case 71: {
      const { grant, marks } = readGrant(line, 1, key, ticket)
      if (marks === '') return { outcome: 'granted', grant }
      const reply: TakeReply = { outcome: 'granted', grant, ...arrivalOf(marks) }
      const at = marks.indexOf('r')
      if (at >= 0) {
        reply.state = readState(key, grant.revision ?? null, marks.slice(at + 1), payloads, user)
      }
      return reply
    }
    case 81: {
      const bar = line.indexOf('|')
      const queued = readQueued(bar < 0 ? line : line.slice(0, bar))
      return { ...queued, ...(bar < 0 ? {} : arrivalOf(line.slice(bar + 1))) }
    }
    case 68:
      return { outcome: 'duplicate' }
    case 79:
      return { outcome: 'overflow' }
    default:
      return { outcome: 'session-lost' }
  }
}

function readQueued(line: string): Extract<NudgeReply, { outcome: 'queued' }> {
  const gap = line.indexOf(' ')
  const holderLeftMs = Math.max(0, Number(line.slice(1, gap)))
  return { outcome: 'queued', holder: unescapeName(line.slice(gap + 1)), holderLeftMs }
}

export function readNudge(line: string, key: string, ticket: string): NudgeReply {
  switch (line.charCodeAt(0)) {
    case 71:
      return { outcome: 'granted', grant: readGrant(line, 1, key, ticket).grant }
    case 81:
      return readQueued(line)
    case 68:
      return { outcome: 'duplicate' }
    case 88:
      return { outcome: 'unknown' }
    default:
      return { outcome: 'session-lost' }
  }
}

/** Replies of commit, and of the release that commits an inbound id. */
export function readCommit(line: string, revision: string | null = null): CommitResult {
  const [first, second] = [line[0], line[1]]
  if (first === 'R' || first === 'c') return { outcome: 'committed', revision }
  if (first === 'r' || second === 's' || second === 'a') {
    return { outcome: 'refused', why: second === 'a' ? 'absent' : 'superseded' }
  }
  const result: CommitResult = {
    outcome: 'committed',
    revision: line.length > 3 ? unescapeName(line.slice(3)) : null,
  }
  if (second !== '-') result.more = second === '1'
  return result
}

/** News of other tickets: 'g<ticket> <grant>|<chat>' or 'd<ticket> <chat>'. */
export type News = { kind: 'granted'; grant: Grant } | { kind: 'duplicate'; key: string; ticket: string }

export function readNews(line: string): News {
  const gap = line.indexOf(' ')
  const ticket = unescapeName(line.slice(1, gap))
  if (line.charCodeAt(0) === 100) return { kind: 'duplicate', ticket, key: unescapeName(line.slice(gap + 1)) }
  const key = unescapeName(line.slice(line.lastIndexOf('|') + 1))
  return { kind: 'granted', grant: readGrant(line, gap + 1, key, ticket).grant }
}
