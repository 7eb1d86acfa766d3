/** Values that cannot be read: kept for a look out of the way, so that nobody stumbles over them twice. */
import type { Damage } from '@botmesh/core'
import type { ChatDocument, Collections } from './documents.js'
import { escapeName } from './names.js'
import { readChat } from './read-chat.js'

/** Notes a damaged value in the collection `damaged`, where it stays; its `_id` says when. */
export async function keep(
  { damaged }: Collections,
  { what, key }: Pick<Damage, 'what' | 'key'>,
  value: string | null,
): Promise<void> {
  await damaged.insertOne({ what, name: key, value })
}

/** Moves a checkpoint or marker that cannot be read aside; its revision stays. @returns whether there was one. */
export async function setAside(
  collections: Collections,
  key: string,
  what: 'checkpoint' | 'marker',
): Promise<boolean> {
  const document = await collections.chats.findOne({ _id: escapeName(key) })
  const damaged: Damage[] = []
  // Expired ones are gone, but that is not what is asked here.
  readChat(key, document, 0, damaged)
  const value = document?.[what]
  if (typeof value !== 'string' || !damaged.some((one) => one.what === what)) return false
  await keep(collections, { what, key }, value)
  const none: Partial<ChatDocument> =
    what === 'checkpoint'
      ? { checkpoint: null, until: null, refs: [], wakeAt: null }
      : { marker: null, markerUntil: null }
  // Only what was read: somebody may have written a good one meanwhile.
  await collections.chats.updateOne({ _id: escapeName(key), [what]: value }, { $set: none })
  return true
}

/** Moves outbox entries that cannot be read aside. */
export async function setEntriesAside(
  collections: Collections,
  chatKey: string,
  document: Pick<ChatDocument, 'outbox'>,
  damaged: readonly Damage[],
): Promise<void> {
  for (const one of damaged) {
    if (one.what !== 'outbox') continue
    const k = escapeName(one.key.slice(chatKey.length + 1))
    const entry = document.outbox?.find((send) => send.k === k)
    if (!entry) continue
    await keep(collections, one, JSON.stringify(entry))
    const { content } = entry
    await collections.chats.updateOne({ _id: escapeName(chatKey) }, { $pull: { outbox: { k, content } } })
  }
}
