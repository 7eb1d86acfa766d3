/**
 * Turns in Redis, data in PostgreSQL, MariaDB or a SQLite file: replicas as real processes that are killed and frozen
 * (S1, scenarios 3, 5 and 6).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { onTestEnd, sharedMariaDbUrl, sharedPostgresUrl } from '../support/index.js'
import { Crew } from './support/bots.js'

const LEASE_MS = 1500
const MINUTE = 60_000

const databases = [
  { name: 'PostgreSQL', url: sharedPostgresUrl },
  { name: 'MariaDB', url: sharedMariaDbUrl },
  {
    name: 'SQLite',
    url: () => {
      const dir = mkdtempSync(join(tmpdir(), 'botmesh-e2e-'))
      onTestEnd(() => rmSync(dir, { recursive: true }))
      return Promise.resolve(`file:${join(dir, 'bot.db')}`)
    },
  },
]

describe.each(databases)('data in $name', ({ url }) => {
  it(
    'K1, D1, D2, H10: after a kill -9 flows go on, work is completed once, and a timeout fires',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, durability: true, env: { DATA_URL: await url() } })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      // A flow that waits, work that nobody delivers again, a reply that was sent, a timeout that only `a` knows of.
      a.write('flow', 'order', 'm1')
      await a.of('handled', 'm1')
      a.write('timed', 'patient 2500', 'm2')
      await a.of('handled', 'm2')
      a.write('work', 'slow 2000', 'm3')
      a.write('said', 'hang a', 'm4')
      await Promise.all([a.of('handling', 'm3'), a.of('replied', 'm4')])
      await crew.kill(a)
      b.write('flow', 'M', 'm5')
      await b.of('handled', 'm5')
      b.write('flow', 'red', 'm6')
      await crew.hears('flow', ['size?', 'color?', 'ordered M red'])
      await Promise.all([b.of('handled', 'm3'), b.of('handled', 'm4')])
      // Delivered again all the same.
      b.write('work', 'slow 2000', 'm3')
      await b.of('accepted', 'm3')
      b.write('work', 'last', 'm7')
      await crew.hears('work', ['did slow 2000', 'echo last'])
      await crew.hears('said', ['did hang a'])
      await crew.hears('timed', ['first?', 'first timed out'])
      // Nobody knows whether the reply whose settlement died with its replica was delivered: told, and not sent again.
      expect(b.told('error').map(({ code }) => code)).toEqual(['SEND_FAILED'])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'L2, I5: one that was frozen beyond its lease has no effect when it goes on',
    async () => {
      const crew = new Crew({ leaseMs: LEASE_MS, env: { DATA_URL: await url() } })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      a.write('chat', 'order', 'm1')
      await a.of('handled', 'm1')
      a.write('other', 'slow 300', 'm2')
      await a.of('handling', 'm2')
      a.process.pause()
      b.write('chat', 'M', 'm3')
      await b.of('handled', 'm3')
      b.write('chat', 'red', 'm4')
      b.write('other', 'slow 300', 'm2')
      await Promise.all([b.of('handled', 'm4'), b.of('handled', 'm2')])
      a.process.resume()
      await a.next('lease-lost')
      a.write('chat', 'order', 'm5')
      await a.of('handled', 'm5')
      await crew.hears('chat', ['size?', 'color?', 'ordered M red', 'size?'])
      await crew.hears('other', ['did slow 300'])
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
