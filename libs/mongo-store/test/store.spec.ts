/** The store suites, on a real MongoDB where `MONGO_URL` is given, else on the double. */
import { describe, expect, it } from '@jest/globals'
import { storeSuite } from '@botmesh/core/testing'
import { bed, serverName } from './bed.js'

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
