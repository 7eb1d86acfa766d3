/** The store suites, on a real MongoDB where `MONGO_URL` is given, else on the double; and on a double that loses answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { MongoClient } from 'mongodb'
import { storeSuite } from '@botmesh/core/testing'
import { MongoDouble } from '../../../test/doubles/mongo/index.js'
import { DATABASE, bed, freshPrefix, serverName } from './bed.js'
import { MongoStore } from '../src/index.js'

const guarantees = {
  conditional: true,
  state: true,
  journal: true,
  outbox: true,
  log: true,
  locks: true,
  coordinator: false,
  timers: true,
}

storeSuite({ describe, it, expect }, { name: `MongoStore on ${serverName}`, guarantees, bed: () => bed() })

storeSuite(
  { describe, it, expect },
  {
    name: 'MongoStore while every 20th answer is lost with its connection',
    guarantees,
    bed: async () => {
      const double = new MongoDouble({ cutEvery: 20 })
      await double.start()
      const clients: MongoClient[] = []
      const prefix = freshPrefix()
      return {
        store: () => {
          // A lost connection makes the driver look at the server again; by default not before half a second.
          const client = new MongoClient(double.url(), { minHeartbeatFrequencyMS: 10 })
          clients.push(client)
          return new MongoStore({ client, database: DATABASE, prefix })
        },
        pass: async (ms: number): Promise<void> => {
          await sleep(ms)
        },
        until: <T>(promise: Promise<T>) => promise,
        close: async () => {
          await Promise.all(clients.map((one) => one.close()))
          await double.stop()
        },
      }
    },
  },
)
