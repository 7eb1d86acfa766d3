/** Effects and arrivals as arguments of scripts: the counterpart of `scripts/chat-state.lua`. */
import { keptRecordOf, type Effects, type FlowCheckpoint } from '@botmesh/core'
import { escapeName } from './keys.js'
import { outboxHash, writeOutboxEntry } from './stored-values.js'
import type { OutboxEntry } from '@botmesh/core'

export { outboxHash }
export { recordJson } from '@botmesh/core'

/**
 * @param chat escaped. @param name the commit's, escaped, for its receipt.
 * @param flags more letters for the first argument.
 */
export function effectsArgs(chat: string, name: string, effects: Effects, flags = ''): string[] {
  const { checkpoint, marker } = effects
  let letters = flags
  if (checkpoint) letters += 'c'
  else if (checkpoint === null) letters += 'x'
  if (marker) letters += 'm'
  else if (marker === null) letters += 'M'
  if (effects.wakeInMs === null) letters += 'W'
  else if (checkpoint && effects.wakeInMs !== undefined) letters += `w${wakeArg(effects)}`
  const args = [
    letters,
    name,
    effects.inboundId === undefined ? '' : `${chat} ${escapeName(effects.inboundId)}`,
    escapeName(effects.expectedRevision ?? ''),
    checkpoint ? escapeName(checkpoint.revision) : '',
    checkpoint ? JSON.stringify(checkpoint) : '',
    checkpoint?.ephemeral && checkpoint.ttlMs !== undefined ? String(Math.round(checkpoint.ttlMs)) : '',
    checkpoint ? keptRecordArg(checkpoint) : '',
    marker ? JSON.stringify(marker) : '',
    marker?.ttlMs === undefined ? '' : String(Math.round(marker.ttlMs)),
  ]
  pushList(args, effects.ack)
  pushList(args, effects.forget)
  pushOutbox(args, effects.outbox)
  return args
}

function pushList(args: string[], names: readonly string[] = []): void {
  args.push(String(names.length))
  for (const name of names) args.push(escapeName(name))
}

function pushOutbox(args: string[], entries: readonly OutboxEntry[] = []): void {
  args.push(String(entries.length))
  for (const entry of entries) args.push(escapeName(entry.key), writeOutboxEntry(entry))
}

function keptRecordArg(checkpoint: FlowCheckpoint): string {
  return escapeName(keptRecordOf(checkpoint) ?? '')
}

function wakeArg({ wakeInMs }: Effects): string {
  return typeof wakeInMs === 'number' ? String(Math.round(wakeInMs)) : ''
}

/** Expected and new revision, JSON, time to live, kept record, appointment: a checkpoint and nothing else. */
export function checkpointArgs(effects: Effects & { checkpoint: FlowCheckpoint }): string[] {
  const { checkpoint, expectedRevision } = effects
  const { ephemeral, ttlMs } = checkpoint
  return [
    escapeName(expectedRevision ?? ''),
    escapeName(checkpoint.revision),
    JSON.stringify(checkpoint),
    ephemeral && ttlMs !== undefined ? String(Math.round(ttlMs)) : '',
    keptRecordArg(checkpoint),
    wakeArg(effects),
  ]
}

/**
 * New revision and JSON of a checkpoint that does not expire, keeps no record, has no appointment and replaces the one
 * that the note knows of.
 * @param note '<ids>-' or '<ids>S<revision>': all that is known of the row. @returns null for any other.
 */
export function plainCheckpointArgs(
  { checkpoint, expectedRevision, wakeInMs }: Effects & { checkpoint: FlowCheckpoint },
  note: string,
): string[] | null {
  const { ephemeral, ttlMs, revision } = checkpoint
  if (typeof wakeInMs === 'number' || (ephemeral && ttlMs !== undefined)) return null
  if (keptRecordOf(checkpoint) !== null) return null
  const known = expectedRevision ? `S${escapeName(expectedRevision)}` : '-'
  if (!note.endsWith(known) || !/^\d+$/.test(note.slice(0, -known.length))) return null
  return [escapeName(revision), JSON.stringify(checkpoint)]
}

/** True if a checkpoint is stored, perhaps with the inbound id, and nothing else. */
export function onlyCheckpoint(effects: Effects): effects is Effects & { checkpoint: FlowCheckpoint } {
  return Boolean(effects.checkpoint) && onlyCheckpointOrId(effects)
}

function onlyCheckpointOrId({ marker, ack, outbox, forget }: Effects): boolean {
  return marker === undefined && !ack?.length && !outbox?.length && !forget?.length
}

/** True if nothing but the inbound id is committed: the cheapest commit. */
export function onlyInboundId(effects: Effects): effects is Effects & { inboundId: string } {
  const { inboundId, checkpoint, wakeInMs } = effects
  return (
    inboundId !== undefined &&
    checkpoint === undefined &&
    wakeInMs === undefined &&
    onlyCheckpointOrId(effects)
  )
}
