/** What a commit leaves among a chat's marks: its inbound id, and a receipt that answers a copy of it. */
import type { CommitResult } from '@botmesh/core'
import { escapeName, unescapeName } from './names.js'

export function inboundMark(id: string): string {
  return `i:${escapeName(id)}`
}

export function receiptMark(commitId: string): string {
  return `c:${escapeName(commitId)}`
}

/** `1` if records remain, else `0`; then `:` and the revision as stored, if there is one. */
export function writeReceipt({ revision, more }: Extract<CommitResult, { outcome: 'committed' }>): string {
  return `${more ? '1' : '0'}${revision === null ? '' : `:${escapeName(revision)}`}`
}

export function readReceipt(value: string): CommitResult {
  return {
    outcome: 'committed',
    revision: value[1] === ':' ? unescapeName(value.slice(2)) : null,
    more: value.startsWith('1'),
  }
}
