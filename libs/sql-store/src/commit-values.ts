/** What the slots of a commit's statements (`commit-unit.ts`) stand for. */
import { keptRecordOf, type Effects } from '@botmesh/core'
import { ttlOf } from './chat-rows.js'
import { escapeName } from './names.js'
import { inboundMark, receiptMark } from './receipts.js'
import { outboxRow } from './sql-outbox.js'
import type { Values } from './statements.js'

/** @throws ConfigError if the checkpoint is marked ephemeral without saying for how long. */
export function valuesOf(
  { chat, fence, commitId, effects }: { chat: string; fence: number; commitId: string; effects: Effects },
  limits: { dedupeMs: number; receiptMs: number },
): Values {
  const { checkpoint, expectedRevision, wakeInMs, marker, inboundId } = effects
  const { ack = [], outbox = [], forget = [] } = effects
  const values: Values = { chat, fence, receipt: receiptMark(commitId), receiptMs: limits.receiptMs }
  if (typeof expectedRevision === 'string') values['expected'] = escapeName(expectedRevision)
  if (checkpoint) {
    const record = keptRecordOf(checkpoint)
    values['checkpoint'] = JSON.stringify(checkpoint)
    values['revision'] = escapeName(checkpoint.revision)
    values['ttlMs'] = ceil(ttlOf(checkpoint))
    values['record'] = record === null ? null : escapeName(record)
    values['wakeMs'] = ceil(wakeInMs)
  }
  if (marker !== undefined) {
    values['marker'] = marker && JSON.stringify(marker)
    values['markerMs'] = ceil(marker?.ttlMs)
  }
  if (inboundId !== undefined) {
    values['inbound'] = inboundMark(inboundId)
    values['dedupeMs'] = limits.dedupeMs
  }
  ack.forEach((id, n) => (values[`ack${n}`] = escapeName(id)))
  forget.forEach((key, n) => (values[`forget${n}`] = escapeName(key)))
  outbox.forEach((entry, n) => {
    for (const [column, value] of Object.entries(outboxRow(chat, entry))) values[`${column}${n}`] = value
  })
  return values
}

function ceil(ms: number | null | undefined): number | null {
  return ms === undefined || ms === null ? null : Math.ceil(ms)
}
