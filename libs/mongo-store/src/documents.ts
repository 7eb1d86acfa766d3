/**
 * The documents, by collection. A chat is one document: everything that its turns decide changes in one atomic
 * update of it (Z4). Only the bodies of journalled messages lie beside it, so that a flood in one chat does not make
 * its document large. Names are escaped (`names.ts`); values are JSON text; times are milliseconds by the server's clock.
 */
import type { Collection, Db } from 'mongodb'

/** A record of the journal that is neither acknowledged nor dead; its message is in `bodies`. */
export interface PendingRecord {
  /** Id. */
  i: string
  seq: number
  attempts: number
  /** JSON text. */
  error: string | null
  dueAt: number
}

export interface DeadRecord extends Omit<PendingRecord, 'dueAt'> {
  at: number
}

export interface SendDocument {
  /** Key of the send. */
  k: string
  hash: string
  /** JSON text. */
  content: string
  status: string
  /** JSON text. */
  sent: string | null
  /** JSON text. */
  error: string | null
}

export interface Receipt {
  /** The commit's id. */
  c: string
  until: number
  revision: string | null
  more: boolean
}

export interface ChatDocument {
  _id: string
  /** Highest fence that has read or written this chat (I5). */
  fence: number
  /** When it was last written: tells whoever wrote what time it is for the server. */
  at?: number
  /** Of the checkpoint, or of the tombstone that its removal left (`-<revision>`); absent if there never was one. */
  revision?: string | null
  checkpoint?: string | null
  /** When the checkpoint expires; null: never. */
  until?: number | null
  /** Records that the checkpoint points to (H7): their messages are kept. */
  refs?: string[]
  /** The checkpoint's appointment (`Effects.wakeInMs`). */
  wakeAt?: number | null
  marker?: string | null
  markerUntil?: number | null
  lastId?: string
  lastAt?: number
  /** When a sweeper last named it. */
  namedAt?: number
  /** Committed and acknowledged ids, the newest last. */
  ids?: { i: string; until: number }[]
  receipts?: Receipt[]
  /** In order of `seq`. */
  pending?: PendingRecord[]
  /** Of the oldest pending record; null: none. */
  dueAt?: number | null
  /** Last `seq` given. */
  last?: number
  /** Name of the call that added a record just now; null: the last call added none. */
  told?: string | null
  dead?: DeadRecord[]
  /** When the oldest of them was given up; null: none. */
  deadAt?: number | null
  outbox?: SendDocument[]
}

/** A journalled message; kept for `dedupeMs`, longer while a chat needs it. */
export interface BodyDocument {
  /** `<chat>~/<record id>`, both escaped. */
  _id: string
  chat: string
  id: string
  /** JSON text. */
  message: string
  /** When it was recorded, or last found to be needed. */
  at: number
}

export interface UserDocument {
  _id: string
  data: string
  revision: string
}

export interface LockDocument {
  /** `lock:<name>` or `lease:<name>`. */
  _id: string
  token: string
  fence: number
  /** 0: released. */
  until: number
  /** For the server's TTL index: the fence goes on for a while after the lock's end. */
  expireAt: Date
}

export interface ChannelDocument {
  _id: string
  /** Number of the newest entry. */
  last: number
  entries: { n: number; payload: string }[]
  until: number
  expireAt: Date
}

/** What could not be read and was moved out of the way. */
export interface DamagedDocument {
  what: string
  name: string
  value: string | null
}

export interface SchemaDocument {
  _id: 'schema'
  version: number
}

export interface Documents {
  chats: ChatDocument
  bodies: BodyDocument
  users: UserDocument
  locks: LockDocument
  channels: ChannelDocument
  damaged: DamagedDocument
  schema: SchemaDocument
}

export type Collections = { [Name in keyof Documents]: Collection<Documents[Name]> }

/** No collection's own name has an underscore, so that no two prefixes share one (C4). */
export function collectionName(prefix: string, name: keyof Documents): string {
  return `${prefix}_${name}`
}

export function collectionsOf(db: Db, prefix: string): Collections {
  const of = <Name extends keyof Documents>(name: Name) =>
    db.collection<Documents[Name]>(collectionName(prefix, name))
  return {
    chats: of('chats'),
    bodies: of('bodies'),
    users: of('users'),
    locks: of('locks'),
    channels: of('channels'),
    damaged: of('damaged'),
    schema: of('schema'),
  }
}
