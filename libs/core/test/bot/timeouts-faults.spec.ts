/**
 * The timeout of a wait, with a fault at every single call of the replica that asks, or of the one that acts in its
 * place: the call takes effect and the replica dies, or its reply is lost. It acts, its sends are not doubled, and the
 * conversation ends (ADR 8, D2, T5).
 */
import { describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, silentLogger } from '../../src/index.js'
import {
  CallFaults,
  FakePlatform,
  FakeProvider,
  ManualClock,
  MemoryCoordinationHub,
  MemoryCoordinator,
  PausableClock,
} from '../../src/testing/index.js'

type Placement = 'shared' | 'separate'
type What = 'crash' | 'lose-reply'
type Role = 'asks' | 'acts in its place'

const LEASE_MS = 3000
const TIMEOUT_MS = 10_000
const KEY = 'fake%3Atest/100'

class Scene {
  readonly clock = new ManualClock()
  readonly platform = new FakePlatform()
  readonly store = new MemoryStore({ clock: this.clock })
  private readonly hub = new MemoryCoordinationHub({ clock: this.clock })

  constructor(private readonly placement: Placement) {}

  async replica(faults: CallFaults) {
    const clock = new PausableClock(this.clock)
    const store = faults.store(this.store)
    const provider = new FakeProvider({ platform: this.platform, capabilities: { uncertainSends: 'skip' } })
    const coordinator =
      this.placement === 'shared'
        ? store.coordinator({ leaseMs: LEASE_MS, clock })
        : new MemoryCoordinator({
            hub: this.hub,
            leaseMs: LEASE_MS,
            clock,
            wrap: (backend) => faults.backend(backend),
          })
    const bot = new Bot({
      provider: faults.provider(provider),
      store,
      clock,
      durability: { retryMs: 100 },
      coordination: { coordinator },
      drainMs: 100,
      logger: silentLogger,
    })
    bot
      .flow('order', { on: 'order' })
      .step('size', async (c) => {
        await c.ask('Size?', { timeout: TIMEOUT_MS }).catch(() => c.say('Too late'))
      })
      .step('bye', (c) => c.say('Bye'))
      .persistent()
    void bot.start().catch(() => undefined)
    await this.clock.advance(100)
    const kill = (): void => {
      faults.kill()
      clock.pause()
      coordinator.crash()
    }
    return { bot, provider, kill }
  }

  get said(): string[] {
    return this.platform.sent.map(({ text }) => text)
  }
}

async function play(role: Role, what: What, at: number, placement: Placement) {
  const scene = new Scene(placement)
  const { clock } = scene
  let down = false
  const faults = new CallFaults({
    at,
    what,
    onCrash: () => (down = true),
    counts: (name) => !/openSession|heartbeat|stranded|start$|stop$/.test(name),
  })
  const asker = await scene.replica(role === 'asks' ? faults : new CallFaults())
  const message = { id: 'm1', body: 'order' }
  let accepted = false
  asker.provider.receive(message).then(
    () => (accepted = true),
    () => undefined,
  )
  await clock.advance(1500)
  if (role !== 'asks') asker.kill()
  const faulty = role === 'asks' ? asker : await scene.replica(faults)
  const step = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 100) {
      await clock.advance(100)
      if (down) faulty.kill()
    }
  }
  await step(TIMEOUT_MS + 2 * LEASE_MS)
  const last = await scene.replica(new CallFaults())
  // The platform delivers again what nobody has acknowledged.
  if (!accepted) void last.provider.receive(message)
  await step(2 * TIMEOUT_MS + 6 * LEASE_MS)
  const ended =
    (await scene.store.getCheckpoint(KEY)) === null && (await scene.store.journal.oldest(KEY)) === null
  const due = await scene.store.journal.stranded(0, 10)
  const { hit, calls } = faults
  // Asked to stop, it would make further calls.
  faulty.kill()
  await Promise.all([last.bot.stop(), clock.advance(20_000)])
  return { hit, call: calls[at - 1], said: scene.said, ended, due }
}

const EXPECTED = ['Size?', 'Too late', 'Bye']
const CASES = (['asks', 'acts in its place'] as const).flatMap((role) =>
  (['crash', 'lose-reply'] as const).flatMap((what) =>
    (['shared', 'separate'] as const).map((placement) => [role, what, placement] as const),
  ),
)

describe.each(CASES)(
  'the replica that %s: %s at the n-th call, turns and data %s',
  (role, what, placement) => {
    it('D2, H10: the timeout acts, nothing is said twice, and the conversation ends', async () => {
      for (let at = 1; ; at++) {
        const { hit, call, said, ended, due } = await play(role, what, at, placement)
        const where = `${what} at ${at} (${call})`
        const missing = EXPECTED.filter((text) => !said.includes(text))
        expect({ where, said, ended, due, few: missing.length <= (hit ? 1 : 0) }).toEqual({
          where,
          said: EXPECTED.filter((text) => !missing.includes(text)),
          ended: true,
          due: [],
          few: true,
        })
        if (hit) continue
        expect(at).toBeGreaterThan(role === 'asks' ? 10 : 6)
        break
      }
    })
  },
)
