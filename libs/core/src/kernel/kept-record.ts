/** Which journal record a checkpoint points to: what every store asks (H7). */
import type { FlowCheckpoint } from '../contracts/checkpoint-store.js'

/**
 * Id of the journal record whose message a checkpoint needs, acknowledged or not (H7): it is to be found as long as this
 * checkpoint stands. Null if it needs none.
 */
export function keptRecordOf({ answer }: Pick<FlowCheckpoint, 'answer'>): string | null {
  return answer === undefined || 'message' in answer ? null : answer.recordId
}
