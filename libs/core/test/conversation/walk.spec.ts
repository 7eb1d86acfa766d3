/**
 * Random walks over a flow on two replicas: whoever gets the message, and whenever a step is cut at `settleMs` or the
 * bot that runs it is stopped, the answers end up in the order written, one a question, none lost and none doubled
 * (K1, K3, K4, H4, H7). A failure prints its seed; `WALK_SEED=<seed>` repeats it alone.
 */
import { describe, expect, it } from '@jest/globals'
import type { FlowRegistry } from '../../src/conversation/index.js'
import { SeededRandom } from '../../src/testing/index.js'
import { Replica } from './mini-runtime.js'
import { World } from './world.js'

const ONLY = process.env['WALK_SEED']
const SEEDS = ONLY === undefined ? Array.from({ length: 300 }, (_, i) => i + 1) : [Number(ONLY)]
const STEPS = 6

interface Walk {
  world: World
  results: unknown[]
  /** Resolves when a step has reached a place where it may be cut; the walk decides whether it is. */
  atRisk(): Promise<void>
}

function define(registry: FlowRegistry, random: SeededRandom, walk: Walk): void {
  const flow = registry.flow<Record<string, string>>('f', { on: 'f' })
  for (let i = 0; i < STEPS; i++) {
    const run = async (c: Parameters<Parameters<typeof flow.step>[1]>[0]): Promise<void> => {
      const answer = await c.ask(`Q${i}?`, { validate: (m) => !m.body.startsWith('bad') || `no ${m.body}` })
      await walk.atRisk()
      c.state[`q${i}`] = answer
      if (random.next() < 0.3) await c.say(`ok ${answer}`)
    }
    if (random.next() < 0.5) flow.step(`s${i}`, run)
    else flow.do(`s${i}`, run)
  }
  flow.do('end', (c) => void walk.results.push({ ...c.state })).persistent()
}

async function walkOnce(seed: number): Promise<{ given: string[]; walk: Walk; copies: number }> {
  const random = new SeededRandom(seed)
  const shape = seed * 7919
  let cutNow: (() => void) | null = null
  const walk: Walk = {
    world: new World(),
    results: [],
    async atRisk() {
      const cut = cutNow
      if (cut === null || random.next() > 0.6) return
      cutNow = null
      cut()
      // What is cut goes on later, under nobody's turn.
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
  const durable = random.next() < 0.5
  const make = (name: string) =>
    new Replica(walk.world, name, (registry) => define(registry, new SeededRandom(shape), walk), { durable })
  const replicas = [make('a'), make('b')] as const
  const pick = () => replicas[random.next() < 0.5 ? 0 : 1]
  await pick().say('f')
  const given: string[] = []
  for (let sent = 0; walk.results.length === 0 && sent < 60; sent++) {
    const bad = random.next() < 0.2
    const body = `${bad ? 'bad' : 'm'}${sent}`
    if (!bad) given.push(body)
    const cut = random.next() < 0.4 ? new Promise<void>((resolve) => (cutNow = resolve)) : undefined
    const reason = random.next() < 0.5 ? 'settled' : 'stopped'
    let handled = await pick().say(body, cut === undefined ? {} : { cut, reason })
    cutNow = null
    // H8: what no checkpoint holds is worked on again before anything newer.
    while (handled.span.ackWithheld) handled = await pick().say(handled.span.message!)
  }
  await walk.world.clock.settle()
  await walk.world.clock.settle()
  return { given, walk, copies: replicas.reduce((sum, one) => sum + one.engine.size, 0) }
}

describe('random walks', () => {
  it.each(SEEDS)('K1, K3, K4, H4, H7: seed %i', async (seed) => {
    const { given, walk } = await walkOnce(seed)
    const [result] = walk.results as [Record<string, string>]
    const answers = Array.from({ length: STEPS }, (_, i) => result?.[`q${i}`])
    expect({ seed, ended: walk.results.length, answers }).toEqual({
      seed,
      ended: 1,
      answers: given.slice(0, STEPS),
    })
    expect(walk.world.checkpoint).toBeNull()
  })
})
