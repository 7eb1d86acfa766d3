/** The store suites on a real PostgreSQL. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { Pool } from 'pg'
import { storeSuite } from '@botmesh/core/testing'
import { SQL_GUARANTEES, sqlSuite, storesOf } from '@botmesh/sql-store/testing'
import { onTestEnd, sharedPostgresUrl } from '../../../test/support/index.js'
import { PostgresStore, type PostgresStoreOptions } from '../src/index.js'

/** One pool for all tests: what differs between them is the prefix. */
let admin: Pool | undefined
onTestEnd(() => admin?.end())

async function bed() {
  const url = await sharedPostgresUrl()
  // Should the server end first, its word about that is of no interest.
  admin ??= new Pool({ connectionString: url, max: 2 }).on('error', () => undefined)
  const pool = admin
  const prefix = `t${randomUUID().replaceAll('-', '')}`
  const stores = storesOf((options: PostgresStoreOptions) => new PostgresStore(options), {
    url,
    prefix,
    connections: 4,
  })
  return {
    ...stores,
    prefix,
    execute: async (statement: string) => (await pool.query<Record<string, unknown>>(statement)).rows,
    pass: (ms: number) => sleep(ms),
    until: <T>(promise: Promise<T>) => promise,
  }
}

storeSuite({ describe, it, expect }, { name: 'PostgresStore', guarantees: SQL_GUARANTEES, bed })
sqlSuite({ describe, it, expect }, { name: 'PostgresStore', bed })
