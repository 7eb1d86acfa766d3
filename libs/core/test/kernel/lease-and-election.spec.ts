/** The pure decisions about a replica's own lease and its candidacies. */
import { describe, expect, it } from '@jest/globals'
import { electionStep, type ElectionEvent, type ElectionState } from '../../src/kernel/election-machine.js'
import { enoughToHandOver, isTrusted, laterTerm, leaseTerm } from '../../src/kernel/lease-term.js'
import { SeededRandom } from '@botmesh/core/testing'

describe('lease term', () => {
  it('L2, I7: trust counts from the start of the attempt, and ends before the backend’s lease', () => {
    const term = leaseTerm(15_000, 1000)
    expect(isTrusted(term, 1000)).toBe(true)
    expect(term.trustUntil).toBeLessThan(16_000)
    expect(term.trustUntil).toBeGreaterThan(15_000)
    expect(isTrusted(term, term.trustUntil)).toBe(false)
  })

  it('a late confirmation of an older attempt does not shorten it', () => {
    const [older, newer] = [leaseTerm(15_000, 1000), leaseTerm(15_000, 6000)]
    expect(laterTerm(newer, older)).toBe(newer)
    expect(laterTerm(older, newer)).toBe(newer)
  })

  it('two thirds: enough right before a renewal that is in time, not enough after one that failed', () => {
    const term = leaseTerm(15_000, 0)
    expect(enoughToHandOver(term, 5000)).toBe(true)
    expect(enoughToHandOver(term, 10_000)).toBe(false)
  })
})

describe('election machine', () => {
  const walk = (...events: ElectionEvent[]) => {
    let state: ElectionState = 'standing'
    const effects: string[] = []
    for (const event of events) {
      const step = electionStep(state, event)
      state = step.state
      effects.push(...step.effects.map((one) => ('reason' in one ? `${one.type} ${one.reason}` : one.type)))
    }
    return { state, effects }
  }

  it('P1: standby, then elected', () => {
    expect(walk({ type: 'queued' }, { type: 'queued' }, { type: 'granted' })).toEqual({
      state: 'leading',
      effects: ['follow standby', 'lead'],
    })
  })

  it('a lost leadership stands again at once; a resigned one after its pause', () => {
    expect(walk({ type: 'granted' }, { type: 'lost' })).toEqual({
      state: 'standing',
      effects: ['lead', 'follow lost', 'stand'],
    })
    expect(
      walk({ type: 'granted' }, { type: 'resigned', reason: 'transport-down' }, { type: 'pause-over' }),
    ).toEqual({ state: 'standing', effects: ['lead', 'release', 'follow transport-down', 'pause', 'stand'] })
  })

  it('nobody leads after a stop: a grant that still arrives is given back', () => {
    expect(walk({ type: 'stop' }, { type: 'granted' })).toEqual({
      state: 'stopped',
      effects: ['withdraw', 'follow stopped', 'release'],
    })
  })

  it('over random events: lead and follow alternate, and nothing but releases comes after a stop', () => {
    const random = new SeededRandom(1)
    const events: ElectionEvent[] = [
      { type: 'granted' },
      { type: 'queued' },
      { type: 'ticket-lost' },
      { type: 'lost' },
      { type: 'resigned', reason: 'resigned' },
      { type: 'pause-over' },
    ]
    for (let round = 0; round < 500; round += 1) {
      let state: ElectionState = 'standing'
      let leading = false
      for (let n = 0; n < 30; n += 1) {
        const step = electionStep(state, n === 29 ? { type: 'stop' } : random.pick(events))
        const leads = step.effects.filter((effect) => effect.type === 'lead').length
        expect(leads).toBeLessThanOrEqual(leading ? 0 : 1)
        if (leads > 0) leading = true
        if (step.effects.some((effect) => effect.type === 'follow')) leading = false
        expect(leading).toBe(step.state === 'leading')
        state = step.state
      }
      expect(electionStep(state, random.pick(events)).state).toBe('stopped')
    }
  })
})
