/**
 * Bad values on real servers (scenario 29, D3): turns and data in one Redis, and data in PostgreSQL and SQLite beside
 * turns in Redis. The cases of bad-input.ts, all at once, each under a prefix of its own.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { sharedRedisUrl } from '../../support/index.js'
import { badInputCases, LOST_RECORD, type BadInputBed, type BadInputCase } from './bad-input.js'
import { RedisBed } from './redis-bed.js'
import { SqlBed } from './sql-bed.js'
import { databases, placeIn } from './sql-places.js'

/** They do not all connect at one moment. */
const APART_MS = 30
const LEASE_MS = 2_000
const run = randomUUID().slice(0, 8)

async function playAll(
  bedOf: (index: number) => Promise<BadInputBed>,
  cases: BadInputCase[] = badInputCases(),
): Promise<string[]> {
  const failures = await Promise.all(
    cases.map(async ({ name, play }, index) => {
      await delay(index * APART_MS)
      const bed = await bedOf(index)
      try {
        await play(bed)
        return ''
      } catch (error) {
        return `${name}\n${error instanceof Error ? error.message : String(error)}`
      } finally {
        await bed.close()
      }
    }),
  )
  return failures.filter((failure) => failure !== '')
}

describe('scenario 29, D2, D3, H2, H3, H7: bad values on real servers', () => {
  it('turns and data in one Redis: reported once, moved aside, and the chat goes on', async () => {
    const url = await sharedRedisUrl()
    const bedOf = async (index: number) => new RedisBed(url, `bad-${run}-${index}`, LEASE_MS)
    expect(await playAll(bedOf, [...badInputCases(), LOST_RECORD])).toEqual([])
  }, 60_000)

  it.each(databases.filter(({ name }) => name !== 'MariaDB'))(
    'turns in Redis, data in $name: reported once, moved aside, and the chat goes on',
    async (database) => {
      const [url, place] = await Promise.all([sharedRedisUrl(), placeIn(database)])
      const bedOf = async (index: number) => new SqlBed(url, place(`b${run}n${index}`), LEASE_MS)
      expect(await playAll(bedOf)).toEqual([])
    },
    60_000,
  )
})
