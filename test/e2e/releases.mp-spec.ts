/**
 * Replicas of two releases side by side (scenario 30): the later one is the sources of this checkout with a change, in
 * processes of its own. What must never be: one of them serves and spoils what the other one keeps.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { Client } from 'pg'
import { sharedPostgresUrl } from '../support/index.js'
import { Crew, type BotReplica } from './support/bots.js'

const LEASE_MS = 1500
const MINUTE = 60_000

type Change = [file: string, before: string, after: string]
function release(...[file, before, after]: Change): Record<string, string> {
  const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  if (!source.includes(before))
    throw new Error(`${file} has no "${before}" that another release could change.`)
  return { ANOTHER_RELEASE: JSON.stringify([[file, before, after]]) }
}

/** One that keeps more in a checkpoint than this one knows of. */
const LATER_VALUES = release(
  'libs/core/src/conversation/ledger.ts',
  'v: 1,',
  "v: 1, ...{ later: 'unknown' },",
)
const LATER_PROTOCOL = release('libs/redis-store/src/mesh.ts', 'PROTOCOL = 1', 'PROTOCOL = 2')
const LATER_SCHEMA = release('libs/sql-store/src/migrations.ts', '= [FIRST]', '= [FIRST, {}]')

/** Starts one that must refuse. @returns what it printed at its end. */
async function refusal(crew: Crew, name: string, env: Record<string, string>): Promise<string> {
  const replica = await crew.standBy(name, env)
  replica.process.send({ do: 'start' })
  const { error } = await replica.next('failed')
  expect(replica.told('started')).toEqual([])
  await crew.kill(replica)
  return String(error)
}

/** A conversation whose every step is another replica's. */
async function converse(crew: Crew, chat: string, ...turns: BotReplica[]): Promise<void> {
  const bodies = ['order', 'M', 'red']
  const texts = ['size?', 'color?', 'ordered M red']
  for (const [n, replica] of turns.entries()) {
    replica.write(chat, bodies[n] ?? 'x', crew.id())
    await crew.hears(chat, texts.slice(0, n + 1))
  }
}

describe('scenario 30, Z11: half the replicas are of another release', () => {
  it(
    'of one protocol: both serve, and conversations go to and fro between them',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true })
      const [before, later] = await Promise.all([crew.join('before'), crew.join('later', LATER_VALUES)])
      await converse(crew, 'one', before, later, before)
      await converse(crew, 'two', later, before, later)
      for (let n = 0; n < 10; n += 1) (n % 2 === 0 ? before : later).write('counted', 'count', crew.id())
      await crew.hears(
        'counted',
        Array.from({ length: 10 }, (_, n) => `count ${n + 1}`),
      )
      expect(crew.told('error')).toEqual([])
      expect(crew.told('log', ({ level }) => level !== 'info')).toEqual([])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'of another protocol: the later ones refuse and say which, the others serve on, and nothing is spoilt',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', 'order', crew.id())
      await crew.hears('chat', ['size?'])
      const refusals = await Promise.all(['c', 'd'].map((name) => refusal(crew, name, LATER_PROTOCOL)))
      for (const text of refusals)
        expect(text).toMatch(/ConfigError.*protocol 1, this one by 2.*same version/)
      b.write('chat', 'M', crew.id())
      await crew.hears('chat', ['size?', 'color?'])
      // Nor when all of the first release are gone: what they keep is still there.
      expect(await crew.disband()).toEqual([])
      expect(await refusal(crew, 'e', LATER_PROTOCOL)).toMatch(/protocol 1, this one by 2/)
      const back = await crew.join('back')
      back.write('chat', 'red', crew.id())
      await crew.hears('chat', ['size?', 'color?', 'ordered M red'])
      expect(crew.told('error')).toEqual([])
      expect((await back.process.terminate()).code).toBe(0)
    },
    MINUTE,
  )

  it(
    'of a later schema: those that run serve on beside it; the earlier release starts no more, and says why',
    async () => {
      const DATA_URL = await sharedPostgresUrl()
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true, env: { DATA_URL } })
      const before = await crew.join('before')
      before.write('chat', 'order', crew.id())
      await crew.hears('chat', ['size?'])
      const later = await Promise.all(['c', 'd'].map((name) => crew.join(name, LATER_SCHEMA)))
      const prefix = crew.prefix.replaceAll('-', '_')
      const client = new Client({ connectionString: DATA_URL })
      await client.connect()
      const { rows } = await client.query<{ version: string }>(
        `select version from ${prefix}_migrations order by version`,
      )
      await client.end()
      expect(rows.map(({ version }) => Number(version))).toEqual([1, 2])
      const [c] = later as [BotReplica]
      c.write('chat', 'M', crew.id())
      await crew.hears('chat', ['size?', 'color?'])
      before.write('chat', 'red', crew.id())
      await crew.hears('chat', ['size?', 'color?', 'ordered M red'])
      await converse(crew, 'other', before, c, before)
      expect(await refusal(crew, 'late', {})).toMatch(/schema version 2; .* versions up to 1.*Update it/)
      expect(crew.told('error')).toEqual([])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
