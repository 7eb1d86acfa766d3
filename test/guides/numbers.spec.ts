/** The numbers that docs/guides/replicas.md derives from `leaseMs`, tried on the in-process hub. */
import { describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, silentLogger } from '@botmesh/core'
import {
  FakePlatform,
  FakeProvider,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  PausableClock,
} from '@botmesh/core/testing'

const L = 15_000
const CHAT = 'fake%3Atest/100'

/** Two coordinators; the first one was just renewed, or is just about to be. */
async function pair(renewed: 'just' | 'about to be') {
  const clock = new ManualClock()
  const hub = new MemoryCoordinationHub({ clock })
  const a = new MemoryCoordinator({ hub, clock, leaseMs: L })
  const b = new MemoryCoordinator({ hub, clock, leaseMs: L })
  await a.start()
  await b.start()
  const turn = await a.turns.take(CHAT)
  if (turn === 'duplicate') throw new Error('nothing was handled before')
  await clock.advance(renewed === 'just' ? (2 * L) / 3 + 1 : L - 1)
  const end = async () => {
    for (const one of [a, b]) {
      let over = false
      void one.stop().finally(() => (over = true))
      await clock.advanceUntil(() => over)
    }
  }
  return { clock, a, b, turn, end }
}

describe('numbers of the guide to replicas', () => {
  it('L2: a freeze of 0.617 leases is survived at the worst moment, one of 0.95 at none', async () => {
    const worst = await pair('about to be')
    worst.clock.freeze(0.616 * L)
    expect(() => worst.turn.assertHeld()).not.toThrow()
    await worst.end()

    const best = await pair('just')
    best.clock.freeze(0.95 * L)
    expect(() => best.turn.assertHeld()).toThrow('frozen')
    await best.end()
  })

  it('L1: after a death who waits gets the turn within two thirds of a lease to a lease', async () => {
    for (const [renewed, expected] of [
      ['just', L],
      ['about to be', (2 * L) / 3],
    ] as const) {
      const { clock, a, b, end } = await pair(renewed)
      let granted = false
      const waiting = b.turns.take(CHAT)
      void waiting.then(() => (granted = true))
      await clock.settle()
      a.crash()
      const waitedMs = await clock.advanceUntil(() => granted)
      expect(waitedMs).toBeGreaterThan(expected - 0.02 * L)
      expect(waitedMs).toBeLessThan(expected + 0.02 * L)
      await end()
    }
  })

  it('D1: a message in the journal of a dead replica is worked on within four thirds of a lease', async () => {
    const clock = new ManualClock()
    const store = new MemoryStore({ clock })
    const platform = new FakePlatform()
    const replica = (hangs: boolean) => {
      const provider = new FakeProvider({ platform })
      const own = new PausableClock(clock)
      const coordinator = store.coordinator({ leaseMs: L, clock: own })
      const bot = new Bot({
        ...{ provider, store, durability: true, clock: own, logger: silentLogger },
        coordination: { coordinator },
      })
      bot.onMessage((ctx) => (hangs ? new Promise(() => undefined) : ctx.reply('done')))
      return { provider, coordinator, bot }
    }
    const [a, b] = [replica(true), replica(false)]
    const inTime = async (work: Promise<unknown>) => {
      let over = false
      void work.finally(() => (over = true))
      await clock.advanceUntil(() => over)
    }
    await inTime(a.bot.start())
    await inTime(b.bot.start())
    await inTime(a.provider.receive('hello'))
    a.coordinator.crash()
    const waitedMs = await clock.advanceUntil(() => platform.sent.length > 0)
    expect(waitedMs).toBeLessThanOrEqual((4 / 3) * L + 0.02 * L)
    expect(platform.sent.map(({ text, by }) => [text, by])).toEqual([['done', b.provider]])
    await inTime(b.bot.stop())
    await inTime(a.bot.stop())
  })
})
