/**
 * Undoes what Baileys' Signal library does to sessions that it only tried.
 *
 * Of a person it keeps several sessions in one record: the open one, and closed ones, in which messages may still come
 * that were sealed before the other side knew of the open one. Which it is a message does not say, so they are tried, the
 * last used first. A try advances the session before the seal is checked, and when another one opens the message the
 * record is written whole, with what the tries have left: the open session would then seal with keys of a step that the
 * phone has not made, and the phone could open nothing any more until both had agreed on a new one. It takes no more than
 * two messages of a person who wrote them before the first answer of a new connection came.
 *
 * The session that opened a message has its time of use changed, which nothing else does: then the others stay as they
 * were. (Unseen goes only a second use within one millisecond: then it was the last used, and tried first.)
 */
import type { SignalKeyStoreWithTransaction } from '@whiskeysockets/baileys'
import { z } from 'zod'

const recordSchema = z.looseObject({
  _sessions: z.record(
    z.string(),
    z.looseObject({ indexInfo: z.looseObject({ used: z.number().optional() }) }),
  ),
})

/** The same keys; what is written of a session record leaves tried sessions as they were. */
export function keepTried(keys: SignalKeyStoreWithTransaction): SignalKeyStoreWithTransaction {
  return {
    ...keys,
    async set(data) {
      const { session } = data
      if (!session) return keys.set(data)
      const before = await keys.get('session', Object.keys(session))
      const kept = Object.entries(session).map(([id, after]) => [id, withoutTries(before[id], after)])
      return keys.set({ ...data, session: Object.fromEntries(kept) })
    },
  }
}

/** @returns `after` as it is, unless a message was opened in one of several sessions that we know how to read. */
function withoutTries<T>(before: unknown, after: T): T {
  const [old, written] = [recordSchema.safeParse(before), recordSchema.safeParse(after)]
  if (!old.success || !written.success) return after
  const [were, are] = [old.data._sessions, written.data._sessions]
  const lasting = Object.keys(are).filter((key) => Object.hasOwn(were, key))
  const opened = lasting.filter((key) => are[key]?.indexInfo.used !== were[key]?.indexInfo.used)
  if (opened.length !== 1) return after
  const kept = lasting.filter((key) => !opened.includes(key)).map((key) => [key, were[key]])
  return { ...after, _sessions: { ...are, ...Object.fromEntries(kept) } }
}
