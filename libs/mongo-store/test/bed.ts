/** A place for stores: a database of its own on the server that `MONGO_URL` names, else on one double for all tests. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { MongoClient, type Db } from 'mongodb'
import { MongoDouble } from '../../../test/doubles/mongo/index.js'
import { onTestEnd } from '../../../test/support/index.js'
import { MongoStore, type MongoStoreOptions } from '../src/index.js'

const given = process.env['MONGO_URL'] ?? ''
export const isReal = given !== ''
export const serverName = isReal ? 'a real server' : 'the double'

let shared: Promise<string> | undefined
let client: MongoClient | undefined
onTestEnd(async () => {
  await client?.close()
})

/** Where the server is. */
export function serverUrl(): Promise<string> {
  shared ??= isReal ? Promise.resolve(given) : startDouble()
  return shared
}

async function startDouble(): Promise<string> {
  const double = new MongoDouble()
  await double.start()
  onTestEnd(() => double.stop())
  return double.url()
}

export const freshPrefix = (): string => `t${randomUUID().replaceAll('-', '')}`

/** All tests share a database: what differs between them is the prefix. */
export const DATABASE = 'botmesh_test'

export async function bed(more: Partial<MongoStoreOptions> = {}) {
  const url = await serverUrl()
  client ??= new MongoClient(url)
  const prefix = freshPrefix()
  const stores: MongoStore[] = []
  const admin: Db = client.db(DATABASE)
  return {
    prefix,
    /** Beside the stores, as an administrator would. */
    collection: (name: string) =>
      admin.collection<{ _id: string } & Record<string, unknown>>(`${prefix}_${name}`),
    store: (options: Partial<MongoStoreOptions> = {}) => {
      const one = new MongoStore({ url, database: DATABASE, prefix, connections: 4, ...more, ...options })
      stores.push(one)
      return one
    },
    pass: async (ms: number): Promise<void> => {
      await sleep(ms)
    },
    until: <T>(promise: Promise<T>) => promise,
    close: async () => {
      await Promise.all(stores.map((one) => one.close()))
    },
  }
}
