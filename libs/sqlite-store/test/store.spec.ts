/** The store suites on SQLite files. */
import { afterAll, describe, expect, it } from '@jest/globals'
import { storeSuite } from '@botmesh/core/testing'
import { fileBed, folder } from './beds.js'

const files = folder()
afterAll(() => files.remove())

storeSuite(
  { describe, it, expect },
  {
    name: 'SQLiteStore',
    guarantees: {
      conditional: true,
      state: true,
      journal: true,
      outbox: true,
      log: true,
      locks: true,
      coordinator: false,
      timers: true,
    },
    bed: async () => fileBed(files),
  },
)
