/**
 * Every contender of the benchmarks on a real Redis for a moment: it handles turns, and the oracle finds what it claims,
 * with a handler that takes time and so few chats that turns meet. Those that exclude nobody prove that the oracle sees.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { startRedis, type RedisInstance } from '../support/index.js'

interface Found {
  contender: string
  turns: number
  overlaps: number
  disorders: number
}

/** Sources, not what was built: the benchmarks' own processes run with the same arguments. */
const FROM_SOURCE = ['--conditions=@botmesh/source', '--import', './test/support/source-loader.mjs']

/** One for all: each contender begins with an empty server. */
let server: RedisInstance
beforeAll(async () => {
  server = await startRedis()
})

/** Few chats, and handlers that take time. */
const MEETING = '--chats 4 --in-flight 4 --handler-ms 2 --ms 400 --at-least 30'.split(' ')
const OURS = /^(bot|botmesh|store-lock)(:|$)/

async function tryOut(contender: string): Promise<Found> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      ...(OURS.test(contender) ? FROM_SOURCE : []),
      ...['bench/try.mjs', '--port', String(server.port)],
      ...MEETING,
      contender,
    ],
    { timeout: 110_000 },
  )
  return JSON.parse(stdout) as Found
}

describe('contenders of the benchmarks', () => {
  it.each([
    ...['bot:flow', 'bot:durable', 'bot:alone', 'grammy'],
    ...['redis-semaphore', 'redlock', 'redlock-universal'],
  ])(
    '%s handles turns, and none overlap',
    async (contender) => {
      const { turns, overlaps } = await tryOut(contender)
      expect(turns).toBeGreaterThanOrEqual(30)
      expect(overlaps).toBe(0)
    },
    120_000,
  )

  it.each(['botmesh:full', 'botmesh:plain', 'botmesh:state', 'store-lock', 'groupmq'])(
    '%s handles turns of a chat one at a time and in order',
    async (contender) => {
      const { turns, overlaps, disorders } = await tryOut(contender)
      expect(turns).toBeGreaterThanOrEqual(30)
      expect({ overlaps, disorders }).toEqual({ overlaps: 0, disorders: 0 })
    },
    120_000,
  )

  it.each(['raw2', 'bullmq'])(
    '%s excludes nobody, and the oracle sees it',
    async (contender) => {
      const { turns, overlaps } = await tryOut(contender)
      expect(turns).toBeGreaterThanOrEqual(30)
      expect(overlaps).toBeGreaterThan(0)
    },
    120_000,
  )
})
