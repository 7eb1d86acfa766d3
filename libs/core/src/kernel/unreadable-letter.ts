/** A dead letter whose record cannot be read: it can still be seen and discarded (D3). */
import type { DeadLetter } from '../contracts/journal.js'

/** @param damaged what is wrong. */
export function unreadableLetter(
  key: string,
  id: string,
  at: number,
  damaged: string,
  known: { seq?: number; attempts?: number; lastError?: string } = {},
): DeadLetter {
  const message = {
    ...{ id, chatId: '', from: '', type: 'other' as const, body: '' },
    ...{ isGroup: false, timestamp: 0 },
  }
  const { seq = 0, attempts = 0, lastError } = known
  const record = { v: 1 as const, id, seq, message, attempts }
  return { key, record: lastError === undefined ? record : { ...record, lastError }, at, damaged }
}
