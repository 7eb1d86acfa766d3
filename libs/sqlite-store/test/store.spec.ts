/** The store suites on SQLite files. */
import { afterAll, describe, expect, it } from '@jest/globals'
import { storeSuite } from '@botmesh/core/testing'
import { SQL_GUARANTEES } from '@botmesh/sql-store/testing'
import { fileBed, folder } from './beds.js'

const files = folder()
afterAll(() => files.remove())

storeSuite(
  { describe, it, expect },
  {
    name: 'SQLiteStore',
    guarantees: SQL_GUARANTEES,
    bed: async () => fileBed(files),
  },
)
