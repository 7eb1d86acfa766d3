/** MongoDB as a place for hand-overs: data in it, turns in Redis, as with the SQL stores. */
import type { Db } from 'mongodb'
import { MongoStore } from '@botmesh/mongo-store'
import type { Stored } from './bed.js'
import { SqlBed } from './sql-bed.js'

interface Chat {
  _id: string
  checkpoint?: string | null
  marker?: string | null
  pending?: unknown[]
}

export interface MongoPlace {
  url: string
  /** Beside the stores. */
  db: Db
  prefix: string
}

export class MongoBed extends SqlBed {
  constructor(
    redisUrl: string,
    private readonly mongo: MongoPlace,
    leaseMs?: number,
  ) {
    const { url, db, prefix } = mongo
    const place = {
      prefix,
      store: (clock: ConstructorParameters<typeof MongoStore>[0]['clock']) =>
        new MongoStore({
          url,
          database: db.databaseName,
          prefix,
          connections: 2,
          ...(clock ? { clock } : {}),
        }),
      query: () => Promise.reject(new Error('MongoDB speaks no SQL.')),
    }
    super(redisUrl, place, leaseMs)
  }

  override async stored(chatKey: string): Promise<Stored> {
    const chat = await this.chat(chatKey)
    if (typeof chat?.checkpoint === 'string') return 'checkpoint'
    return typeof chat?.marker === 'string' ? 'marker' : 'none'
  }

  override async pending(chatKey: string): Promise<number> {
    return (await this.chat(chatKey))?.pending?.length ?? 0
  }

  private chat(chatKey: string): Promise<Chat | null> {
    const { db, prefix } = this.mongo
    return db.collection<Chat>(`${prefix}_chats`).findOne({ _id: chatKey })
  }
}
