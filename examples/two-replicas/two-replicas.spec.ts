/** Two replicas of one bot in one test, on a clock that the test moves: a hand-over, a death, a freeze. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { MemoryStore, silentLogger, type Bot } from '@botmesh/core'
import { FakePlatform, FakeProvider, ManualClock, type MemoryCoordinator } from '@botmesh/core/testing'
import { createBot } from '../plain-bot/bot.js'

// --- set-up
interface Replica {
  bot: Bot
  provider: FakeProvider
  coordinator: MemoryCoordinator
}

const LEASE_MS = 15_000
let clock: ManualClock
let platform: FakePlatform
let store: MemoryStore
let replicas: Replica[]

beforeEach(() => {
  clock = new ManualClock()
  platform = new FakePlatform() // What the user sees, whichever replica said it.
  store = new MemoryStore({ clock }) // What the replicas share.
  replicas = []
})

afterEach(async () => {
  for (const { bot } of replicas) await inTime(bot.stop())
})

async function replica(name: string, prepare?: (bot: Bot) => void): Promise<Replica> {
  const provider = new FakeProvider({ platform })
  const coordinator = store.coordinator({ replicaId: name, leaseMs: LEASE_MS })
  const bot = createBot({
    ...{ provider, store, clock, name, logger: silentLogger },
    durability: true,
    coordination: { coordinator },
  })
  const one = { bot, provider, coordinator }
  prepare?.(bot)
  replicas.push(one)
  await inTime(bot.start())
  return one
}

/** Waits, and lets the clock go on meanwhile. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let over = false
  const watched = work.finally(() => (over = true))
  watched.catch(() => undefined)
  await clock.advanceUntil(() => over)
  return watched
}

const said = (): string[] => platform.sent.map((send) => send.text)

async function says(to: Replica, body: string, answers = 1): Promise<void> {
  const count = said().length + answers
  await inTime(to.provider.receive(body))
  await clock.advanceUntil(() => said().length >= count)
}
// --- end

describe('examples: two replicas', () => {
  // --- hand-over
  it('K1: the order goes on where the next message arrives', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    const handovers: string[] = []
    b.bot.on('coordination:handover', ({ name, outcome }) => handovers.push(`${name} ${outcome}`))

    await says(a, 'order')
    await says(b, 'M')

    expect(said()).toEqual(['Which size?', 'Where shall it go?'])
    expect(handovers).toEqual(['order resumed'])
  })
  // --- end

  // --- crash
  it('L1, D1: a replica dies while it works: the other one does that message, after a lease', async () => {
    let working = false
    const a = await replica('a', (bot) =>
      bot.before('message', () => {
        working = true
        return new Promise(() => undefined) // It hangs, and then the process dies.
      }),
    )
    const b = await replica('b')
    await inTime(a.provider.receive('order'))
    await clock.advanceUntil(() => working)

    a.coordinator.crash()

    const waitedMs = await clock.advanceUntil(() => said().length > 0)
    expect(b.provider.texts).toEqual(['Which size?'])
    expect(waitedMs).toBeLessThanOrEqual(2 * LEASE_MS)
  })
  // --- end

  // --- freeze
  it('L2: a replica that was frozen for longer than a lease says nothing afterwards', async () => {
    let goOn: () => void = () => undefined
    const a = await replica('a', (bot) =>
      bot.before('message', () => new Promise<void>((resolve) => (goOn = resolve))),
    )
    const lost: string[] = []
    a.bot.on('coordination:lease-lost', ({ reason }) => lost.push(reason))
    await inTime(a.provider.receive('order'))

    clock.freeze(LEASE_MS) // Time passes, and nothing in this process runs.
    goOn()
    await clock.settle()

    expect(lost).toEqual(['frozen'])
    expect(said()).toEqual([])
  })
  // --- end
})
