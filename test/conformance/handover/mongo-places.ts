/** MongoDB beside turns in Redis: the server at `MONGO_URL`, else a double of one; each store with collections of its own. */
import { MongoClient } from 'mongodb'
import { MongoDouble } from '../../doubles/mongo/index.js'
import { onTestEnd } from '../../support/index.js'
import type { MongoPlace } from './mongo-bed.js'

const DATABASE = 'botmesh_handover'

let server: Promise<{ url: string; client: MongoClient }> | undefined

/** Begun once a spec file. */
export async function mongoPlace(prefix: string): Promise<MongoPlace> {
  server ??= startServer()
  const { url, client } = await server
  return { url, db: client.db(DATABASE), prefix }
}

async function startServer(): Promise<{ url: string; client: MongoClient }> {
  const given = process.env['MONGO_URL'] ?? ''
  const double = new MongoDouble()
  if (given === '') {
    await double.start()
    onTestEnd(() => double.stop())
  }
  const url = given === '' ? double.url() : given
  const client = new MongoClient(url)
  onTestEnd(() => client.close())
  return { url, client }
}
