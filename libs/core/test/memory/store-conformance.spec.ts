/** The memory store passes the suite that every store has to pass. */
import { describe, expect, it } from '@jest/globals'
import { memoryStoreBed, storeSuite } from '@botmesh/core/testing'

storeSuite(
  { describe, it, expect },
  {
    name: 'memory',
    guarantees: {
      conditional: true,
      state: true,
      journal: true,
      outbox: true,
      log: true,
      locks: true,
      coordinator: true,
      timers: true,
    },
    bed: async () => memoryStoreBed(),
  },
)
