/** What one heartbeat's call brings back, put together: repairs, nudges, and the fences that both sides know of. */
import {
  CoordinationUnavailableError,
  type CommitResult,
  type Grant,
  type HeldKey,
  type HeartbeatRequest,
  type NudgeReply,
  type Repair,
  type RepairReply,
} from '@botmesh/core'
import type { Entry, Payloads } from './batch-queue.js'
import { escapeName, unescapeName } from './keys.js'
import { readGrant } from './replies.js'
import { commitEntry, releaseEntry, withdrawEntry } from './turn-entries.js'

/** The renewal: 'H' of session.lua, which announces the fences that the session holds. */
export class RenewalEntry implements Entry<string> {
  readonly chat = ''
  readonly token: string
  readonly more: string[]
  /** With spaces between them; null if the session is not alive. */
  held: string | null = null

  constructor({ floor, replicaId, processId }: HeartbeatRequest) {
    this.token = `H${floor}`
    this.more = [escapeName(replicaId), escapeName(processId)]
  }

  read(line: string, payloads: Payloads): string {
    if (line.startsWith('H')) this.held = payloads.values[payloads.at++] ?? ''
    return line
  }
}

/**
 * Fences are compared, never ticket ids alone.
 * @param held the fences that the server holds for the session, with spaces between them.
 */
export function compareHeld(
  request: HeartbeatRequest,
  held: string,
): { missing: HeldKey[]; unknown: string[] } {
  const there = new Set(held === '' ? [] : held.split(' '))
  there.delete('')
  const missing = request.held.filter((one) => !there.delete(String(one.fence)))
  return { missing, unknown: [...there] }
}

export function repairEntry(repair: Repair): Entry<unknown> {
  switch (repair.kind) {
    case 'release':
      return releaseEntry(repair)
    case 'withdraw':
      return withdrawEntry(repair)
    case 'commit':
      return commitEntry(repair, Infinity)
  }
}

export function repairResult(repair: Repair, result: unknown): RepairReply {
  if (result === undefined || result instanceof CoordinationUnavailableError) return 'unknown'
  if (result instanceof Error) return { failed: result }
  return repair.kind === 'commit' ? { commit: result as CommitResult } : 'done'
}

export function nudgeResult(result: unknown): NudgeReply {
  // One that failed alone: as if nothing had been asked; the next heartbeat asks again.
  if (result === undefined || result instanceof Error)
    return { outcome: 'queued', holder: null, holderLeftMs: 0 }
  return result as NudgeReply
}

/** Lines of `explain.lua`: grants that the replica did not know of. */
export function readExplained(lines: readonly unknown[]): Grant[] {
  const grants: Grant[] = []
  for (const line of lines) {
    if (typeof line !== 'string' || !line.startsWith('X')) continue
    const gap = line.indexOf(' ')
    const key = unescapeName(line.slice(line.lastIndexOf('|') + 1))
    grants.push(readGrant(line, gap + 1, key, unescapeName(line.slice(1, gap))).grant)
  }
  return grants
}
