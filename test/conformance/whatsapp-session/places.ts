/** Stores that keep the WhatsApp session: Redis, the SQL stores and MongoDB, each replica on connections of its own. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoStore } from '@botmesh/mongo-store'
import { MySQLStore } from '@botmesh/mysql-store'
import { PostgresStore } from '@botmesh/postgres-store'
import { RedisStore } from '@botmesh/redis-store'
import { SQLiteStore } from '@botmesh/sqlite-store'
import { MongoDouble } from '../../doubles/mongo/index.js'
import { onTestEnd, sharedMariaDbUrl, sharedPostgresUrl, sharedRedisUrl } from '../../support/index.js'
import type { SessionBed, SessionPlace } from '../../support/whatsapp-session/place.js'
import type { FencingStore } from '../../support/whatsapp-session/replica-store.js'

type OpenStore = FencingStore & { open(): Promise<void>; close(): Promise<void> }

/** @param make a store of this prefix. */
function bedOf(make: (prefix: string) => OpenStore): SessionBed {
  const prefix = `s${randomUUID().replaceAll('-', '').slice(0, 16)}`
  const stores: OpenStore[] = []
  return {
    store: async () => {
      const one = make(prefix)
      stores.push(one)
      await one.open()
      return one
    },
    close: async () => {
      await Promise.all(stores.map((one) => one.close()))
    },
  }
}

const FEW = { connections: 4 }

let mongoUrl: Promise<string> | undefined
/** The server that `MONGO_URL` names, else the double. */
function mongo(): Promise<string> {
  const given = process.env['MONGO_URL'] ?? ''
  mongoUrl ??= given === '' ? startDouble() : Promise.resolve(given)
  return mongoUrl
}

async function startDouble(): Promise<string> {
  const double = new MongoDouble()
  await double.start()
  onTestEnd(() => double.stop())
  return double.url()
}

export const places: SessionPlace[] = [
  {
    name: 'Redis',
    bed: async () => {
      const url = await sharedRedisUrl()
      return bedOf((prefix) => new RedisStore({ url, prefix }))
    },
  },
  {
    name: 'SQLite',
    bed: async () => {
      const dir = mkdtempSync(join(tmpdir(), 'botmesh-session-'))
      onTestEnd(() => rmSync(dir, { recursive: true }))
      return bedOf(() => new SQLiteStore({ path: join(dir, 'bot.db'), synchronous: 'normal' }))
    },
  },
  {
    name: 'PostgreSQL',
    bed: async () => {
      const url = await sharedPostgresUrl()
      return bedOf((prefix) => new PostgresStore({ url, prefix, ...FEW }))
    },
  },
  {
    name: 'MariaDB',
    bed: async () => {
      const url = await sharedMariaDbUrl()
      return bedOf((prefix) => new MySQLStore({ url, prefix, ...FEW }))
    },
  },
  {
    name: 'MongoDB',
    bed: async () => {
      const url = await mongo()
      return bedOf((prefix) => new MongoStore({ url, database: 'botmesh_test', prefix, ...FEW }))
    },
  },
]
