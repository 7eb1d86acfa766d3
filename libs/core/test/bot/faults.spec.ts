/**
 * A fault at every single call to the drivers, one run for each: the replica dies right after the call took effect, or
 * its reply is lost. With durability every message has its effect, in order, and what users see is at most once
 * (`skip`) or at least once (`resend`) (D1, D2, H8, Z4, scenarios 5, 14, 15, 16).
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
} from '../../src/testing/index.js'

interface Outcome {
  /** The fault happened; false once n is beyond the last call. */
  hit: boolean
  call: string | undefined
  said: string[]
  errors: unknown[]
  ended: boolean
}

type Placement = 'shared' | 'separate'

const SCRIPT = ['order', 'M', 'red', 'bye']

async function play(
  what: 'crash' | 'lose-reply',
  at: number,
  uncertainSends: 'skip' | 'resend',
  placement: Placement,
): Promise<Outcome> {
  const clock = new ManualClock()
  const platform = new FakePlatform()
  const store = new MemoryStore({ clock })
  let down = false
  const errors: unknown[] = []
  const bots: Bot[] = []
  const hub = new MemoryCoordinationHub({ clock })
  const replica = async (data: MemoryStore, faults: CallFaults | null) => {
    const provider = new FakeProvider({ platform, capabilities: { uncertainSends } })
    const coordinator =
      placement === 'shared'
        ? data.coordinator({ leaseMs: 3000, clock })
        : new MemoryCoordinator({
            hub,
            leaseMs: 3000,
            clock,
            ...(faults === null ? {} : { wrap: (backend) => faults.backend(backend) }),
          })
    const bot = new Bot({
      provider: faults === null ? provider : faults.store(provider),
      store: data,
      clock,
      durability: { retryMs: 100 },
      coordination: { coordinator },
      drainMs: 100,
      logger: silentLogger,
    })
    bot.on('error', ({ error }) => errors.push(error))
    bot
      .flow('order', { on: 'order' })
      .ask('size', 'Size?')
      .ask('colour', 'Colour?')
      .do('done', async (c) => void (await c.say(`${String(c.state.size)} ${String(c.state.colour)}`)))
      .persistent()
    bot.onMessage((ctx) => ctx.reply(ctx.body))
    bots.push(bot)
    let started = false
    bot.start().then(
      () => (started = true),
      () => undefined,
    )
    await clock.advanceUntil(() => started || down)
    return { bot, provider, coordinator }
  }
  const faults = new CallFaults({
    at,
    what,
    onCrash: () => (down = true),
    counts: (name) => !/openSession|heartbeat|start$|stop$/.test(name),
  })
  const b = await replica(store, null)
  const a = await replica(faults.store(store), faults)
  for (const [index, body] of SCRIPT.entries()) {
    const message = { id: `m${index}`, body }
    let accepted = false
    if (!down) {
      a.provider.receive(message).then(
        () => (accepted = true),
        () => undefined,
      )
      await clock.advance(1500)
    }
    if (down) a.coordinator.crash()
    // The platform delivers again what nobody has acknowledged.
    if (!accepted) await run(clock, b.provider.receive(message)).catch(() => undefined)
    await clock.advance(down ? 8000 : 500)
  }
  await clock.advance(6000)
  const key = 'fake%3Atest/100'
  const left = await store.journal.oldest(key)
  const outcome: Outcome = {
    hit: faults.hit,
    call: faults.calls[at - 1],
    said: platform.sent.map((send) => send.text),
    errors,
    ended: left === null && (await store.getCheckpoint(key)) === null,
  }
  // The dead one is left as it is: nothing of a dead process can be stopped.
  await run(clock, b.bot.stop())
  return outcome
}

async function run<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let done = false
  const watched = work.finally(() => (done = true))
  watched.catch(() => undefined)
  await clock.advanceUntil(() => done)
  return watched
}

const EXPECTED = ['Size?', 'Colour?', 'M red', 'bye']

const WHATS = ['crash', 'lose-reply'] as const
const CASES = WHATS.flatMap((what) =>
  (['shared', 'separate'] as const).map((place) => [what, place] as const),
)

describe.each(CASES)('%s at the n-th call, turns and data %s', (what, placement) => {
  it('D2: at most once, in order, and the conversation comes to its end', async () => {
    for (let at = 1; ; at++) {
      const { hit, call, said, ended } = await play(what, at, 'skip', placement)
      if (!hit) {
        expect(at).toBeGreaterThan(20)
        break
      }
      // Nothing doubled, nothing out of order; at most the one send in doubt is missing.
      const missing = EXPECTED.filter((text) => !said.includes(text))
      const where = `${what} at ${at} (${call})`
      expect({ where, said, ended, few: missing.length <= 1 }).toEqual({
        where,
        said: EXPECTED.filter((text) => !missing.includes(text)),
        ended: true,
        few: true,
      })
    }
  })

  it("D2: at least once where the transport says 'resend'", async () => {
    for (let at = 1; ; at++) {
      const { hit, call, said, ended } = await play(what, at, 'resend', placement)
      if (!hit) break
      const where = `${what} at ${at} (${call})`
      const first = said.filter((text, i) => said.indexOf(text) === i)
      expect({ where, said: first, ended }).toEqual({ where, said: EXPECTED, ended: true })
    }
  })
})
