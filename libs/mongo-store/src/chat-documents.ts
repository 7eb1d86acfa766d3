/** Making sure that a chat has a document. */
import type { ChatDocument, Collections } from './documents.js'
import type { Stage } from './chat-writes.js'
import { isDuplicateKey } from './verdict.js'

/** An update that holds for a chat without a document too. */
export async function upsert(
  { chats }: Collections,
  _id: string,
  stages: Stage[],
  projection: object,
): Promise<ChatDocument> {
  for (;;) {
    try {
      const options = { upsert: true, returnDocument: 'after', projection } as const
      const document = await chats.findOneAndUpdate({ _id }, stages, options)
      if (document) return document
    } catch (error) {
      // Somebody made it just now.
      if (!isDuplicateKey(error)) throw error
    }
  }
}

/** Makes the chat's document if there is none; empty it changes nothing, and whoever writes compares again. */
export async function ensure({ chats }: Collections, _id: string): Promise<void> {
  try {
    await chats.insertOne({ _id, fence: 0 })
  } catch (error) {
    if (!isDuplicateKey(error)) throw error
  }
}
