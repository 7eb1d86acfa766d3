/** The store suites on a real server: MariaDB, or the MySQL that MYSQL_URL names. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { storeSuite } from '@botmesh/core/testing'
import { SQL_GUARANTEES, sqlSuite, storesOf } from '@botmesh/sql-store/testing'
import { onTestEnd, sharedMariaDbUrl } from '../../../test/support/index.js'
import { MySQLStore, type MySQLStoreOptions } from '../src/index.js'

/** One pool for all tests: what differs between them is the prefix. */
let admin: Pool | undefined
onTestEnd(() => admin?.end())

async function bed() {
  const url = await sharedMariaDbUrl()
  admin ??= createPool({ uri: url, connectionLimit: 2 })
  const pool = admin
  const prefix = `t${randomUUID().replaceAll('-', '')}`
  const stores = storesOf((options: MySQLStoreOptions) => new MySQLStore(options), {
    url,
    prefix,
    connections: 4,
  })
  return {
    ...stores,
    prefix,
    execute: async (statement: string) => {
      const [rows] = await pool.query<RowDataPacket[]>(statement)
      return Array.isArray(rows) ? rows : []
    },
    pass: (ms: number) => sleep(ms),
    until: <T>(promise: Promise<T>) => promise,
  }
}

storeSuite({ describe, it, expect }, { name: 'MySQLStore', guarantees: SQL_GUARANTEES, bed })
sqlSuite({ describe, it, expect }, { name: 'MySQLStore', bed })
