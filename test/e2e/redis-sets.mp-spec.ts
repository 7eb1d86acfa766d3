/**
 * Bots as processes on a Redis Cluster and on a Sentinel set: turns, deaths and hand-overs as on a single server, and a
 * failover in the middle of conversations (S3, scenarios 1, 2, 3, 13).
 */
import { describe, expect, it } from '@jest/globals'
import { waitFor } from '../support/index.js'
import { Crew } from './support/bots.js'
import { stages } from './support/redis-stages.js'

const LEASE_MS = 1500
const MINUTE = 60_000
const CHATS = Array.from({ length: 6 }, (_, n) => `flow-${n}`)

describe.each(stages)('$name', ({ stage }) => {
  it(
    'turns are one at a time and in order, also after a freeze and a kill -9; a failover does not end a conversation',
    async () => {
      const { place, primary } = await stage()
      const crew = new Crew({ place, leaseMs: LEASE_MS, durability: true, env: { LEAD: 'job:report' } })
      const [a, b] = await Promise.all([crew.join('a'), crew.join('b')])
      await waitFor(() => crew.told('leader').length === 1, { what: 'one of them leads' })

      // Scenario 13.
      for (let n = 0; n < 10; n += 1) (n % 2 === 0 ? a : b).write('counted', 'count', crew.id())
      const counts = Array.from({ length: 10 }, (_, n) => `count ${n + 1}`)
      await crew.hears('counted', counts)

      // Scenario 1.
      for (const one of [a, b]) one.process.send({ do: 'hammer', key: 'line:e2e/hammered', turns: 200 })
      for (const one of [a, b]) {
        const found = await one.next('hammered', { timeoutMs: 50_000 })
        expect(found).toMatchObject({ turns: 200, overlaps: 0, unordered: 0, failures: [] })
      }

      // Scenario 2: stopped in the middle of a message for longer than its lease.
      a.write('frozen', 'slow 300', 'f1')
      await a.of('handling', 'f1')
      a.process.pause()
      b.write('frozen', 'next', 'f2')
      await crew.hears('frozen', ['did slow 300', 'echo next'])
      a.process.resume()
      expect(await a.of('send-refused', 'f1')).toMatchObject({
        reason: expect.stringMatching(/frozen|expired/),
      })
      a.write('frozen', 'again', 'f3')
      await crew.hears('frozen', ['did slow 300', 'echo next', 'echo again'])

      // A primary is lost between a question and its answer.
      for (const chat of CHATS) a.write(chat, 'order', crew.id())
      await Promise.all(CHATS.map((chat) => crew.hears(chat, ['size?'])))
      const lost = await primary()
      await lost.copied()
      await lost.kill()
      const kept = CHATS.map((chat) => ({ chat, id: crew.id() }))
      // As platforms do: again until it is accepted.
      const deliver = async ({ chat, id }: { chat: string; id: string }): Promise<void> => {
        for (let accepted = false; !accepted;) {
          b.write(chat, 'M', id)
          accepted = (await b.of('answered', id, { timeoutMs: MINUTE }))['accepted'] === true
        }
      }
      await Promise.all(kept.map(deliver))
      await Promise.all(CHATS.map((chat) => crew.hears(chat, ['size?', 'color?'])))
      await lost.restart()

      // Scenario 3.
      a.write('work', 'slow 60000', 'w1')
      await a.of('handling', 'w1')
      const since = performance.now()
      await crew.kill(a)
      for (const chat of CHATS) b.write(chat, 'red', crew.id())
      await Promise.all(CHATS.map((chat) => crew.hears(chat, ['size?', 'color?', 'ordered M red'])))
      await b.of('handling', 'w1')
      expect(performance.now() - since).toBeLessThan(LEASE_MS + 1000)
      await waitFor(() => b.told('leader').length > 0, { what: 'the other one leads' })
      expect(await b.status()).toMatchObject({ status: 'live', ready: true })
      // What still runs is not waited for.
      await crew.kill(b)
    },
    2 * MINUTE,
  )
})
