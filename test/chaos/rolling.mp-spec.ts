/** A deploy after the other while people write: bots as processes on real Redis, with durability. */
import { describe, expect, it } from '@jest/globals'
import { waitFor } from '../support/index.js'
import { Crew, type BotReplica } from '../e2e/support/bots.js'
import { Platform } from './platform.js'

const RESTARTS = 20
const REPLICAS = 2
const CHATTERS = 8
const COUNTERS = 2
const BUYERS = 6
const MINUTE = 60_000

describe('scenario 15, N5', () => {
  it(
    'twenty rolling restarts under steady traffic: every message gets exactly one reply, in order',
    async () => {
      const crew = new Crew({ leaseMs: 4000, durability: true })
      const up = await Promise.all(Array.from({ length: REPLICAS }, (_, n) => crew.join(`first-${n}`)))
      const platform = new Platform(crew, up)
      let writing = true
      const people = [
        ...Array.from({ length: CHATTERS }, (_, n) => platform.chatter(`chatter-${n}`, () => writing)),
        ...Array.from({ length: COUNTERS }, (_, n) => platform.counter(`counter-${n}`, () => writing)),
        ...Array.from({ length: BUYERS }, (_, n) => platform.buyer(`buyer-${n}`, () => writing)),
      ]
      try {
        await rollingRestarts(crew, up)
      } finally {
        writing = false
      }
      const expected = await Promise.all(people)
      const wrong = () =>
        expected.filter(({ chat, replies }) => crew.said(chat).join('\n') !== replies.join('\n'))
      await waitFor(() => wrong().length === 0, { what: 'everyone is answered' }).catch(() => undefined)
      expect(await crew.disband()).toEqual([])
      const found = wrong().map(({ chat, replies }) => ({ chat, said: crew.said(chat), replies }))
      expect(found).toEqual([])
      expect(crew.told('error')).toEqual([])
      const messages = expected.reduce((sum, { replies }) => sum + replies.length, 0)
      expect(messages).toBeGreaterThan(RESTARTS * 20)
    },
    2 * MINUTE,
  )
})

/** One new replica comes up, then the oldest goes: as with `maxSurge: 1, maxUnavailable: 0`. */
async function rollingRestarts(crew: Crew, up: BotReplica[]): Promise<void> {
  // Each is loaded while the one before it takes over, so that the test spends its time on hand-overs.
  let loading = crew.standBy('next-0')
  for (let n = 1; n <= RESTARTS; n += 1) {
    const next = await loading
    if (n < RESTARTS) loading = crew.standBy(`next-${n}`)
    next.process.send({ do: 'start' })
    await next.next('started')
    up.push(next)
    const oldest = up.shift() as BotReplica
    const { code, signal } = await oldest.process.terminate()
    if (code !== 0) throw new Error(`${oldest.name} ended with ${code ?? signal}.\n${oldest.process.log}`)
  }
}
