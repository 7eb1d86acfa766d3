/** Messages that waited behind a kept answer when their conversation ended: whoever wrote them is owed an answer (H7). */
import { describe, expect, it } from '@jest/globals'
import { LeaseLostError } from '../../src/contracts/errors.js'
import type { FlowRegistry } from '../../src/conversation/index.js'
import type { Replica } from './mini-runtime.js'
import { gate, setUp } from './scenes.js'

/** What becomes of the flow once its answer is judged at last. */
type Outcome = 'accepted' | 'refused' | 'broken'

/** A flow of one question, cut short after its answer for as many messages as there are; then it ends. */
async function endWith(outcome: Outcome, bodies: readonly string[], durable: boolean) {
  const judging = gate()
  let done = false
  const define = (registry: FlowRegistry): void =>
    void registry
      .flow('order', { on: 'order' })
      .step('size', async (c) => {
        const validate = async (): Promise<boolean> => {
          judging.reach()
          if (!done) await judging.opened
          return outcome !== 'refused'
        }
        await c.ask('Size?', { maxAttempts: 1, validate })
        if (outcome === 'broken') throw new Error('broken')
      })
      .persistent()
  const { world, a } = setUp(define, { durable })
  await a.say('order')
  await a.say('M', { cut: judging.reached })
  for (const body of bodies.slice(0, -1)) await a.say(body, { cut: judging.reached })
  done = true
  return { world, a, last: () => a.say(bodies.at(-1)!) }
}

/** Handlers of one body throw. */
function failFor(replica: Replica, body: string, error: Error): void {
  const unclaimed = replica.unclaimed.bind(replica)
  replica.unclaimed = (scope, answer) =>
    answer.original.body === body ? Promise.reject(error) : unclaimed(scope, answer)
}

describe.each([true, false])('H7: messages that are left over, durable: %s', (durable) => {
  it.each(['accepted', 'refused'] as const)('are handled if the last answer was %s', async (outcome) => {
    const { world, a, last } = await endWith(outcome, ['Calle 1', 'hello'], durable)
    await last()
    expect([world.checkpoint, a.routed, a.reported]).toEqual([null, ['Calle 1', 'hello'], []])
  })

  it('a handler that fails is reported once, whatever kind of error it is', async () => {
    const { a, last } = await endWith('accepted', ['Calle 1', 'hello'], durable)
    const error = new LeaseLostError('a job', 'revoked')
    failFor(a, 'Calle 1', error)
    await last()
    expect(a.reported).toEqual([error])
    // With a record all of them come again; without, nobody comes back to those after it.
    expect(a.routed).toEqual(durable ? [] : ['hello'])
  })

  it('those of a flow that fails come again with its attempt, if there is one', async () => {
    const { a, last } = await endWith('broken', ['Calle 1', 'hello'], durable)
    await last()
    expect(a.reported).toEqual([new Error('broken')])
    expect(a.routed).toEqual(durable ? [] : ['Calle 1', 'hello'])
  })
})

it('D3: those of a flow that is given up are not handled beside the dead letter', async () => {
  const { world, a } = await endWith('broken', ['hello'], true)
  await a.say('hello', { finalAttempt: true })
  expect([world.checkpoint, a.routed]).toEqual([null, []])
})

it('without a record every failure is reported', async () => {
  const { a, last } = await endWith('accepted', ['one', 'two', 'three'], false)
  const unclaimed = a.unclaimed.bind(a)
  a.unclaimed = async (scope, answer) => {
    if (answer.original.body !== 'two') throw new Error(answer.original.body)
    return unclaimed(scope, answer)
  }
  await last()
  expect(a.reported).toHaveLength(2)
  expect(a.reported).toEqual(expect.arrayContaining([new Error('one'), new Error('three')]))
  expect(a.routed).toEqual(['two'])
})
