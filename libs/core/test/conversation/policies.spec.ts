/** The pure decisions, as tables. */
import { describe, expect, it } from '@jest/globals'
import type { ConversationMarker, FlowCheckpoint } from '../../src/contracts/checkpoint-store.js'
import {
  LeaseLostError,
  TooManyAttemptsError,
  WaitTimeoutError,
  type LeaseLostReason,
} from '../../src/contracts/errors.js'
import { fingerprintOf, type StepShape } from '../../src/kernel/flow-fingerprint.js'
import {
  decideArrival,
  type ArrivalDecision,
  type DefinitionFacts,
} from '../../src/kernel/handover-policy.js'
import { endingOf, markerDue, ttlOf, withholdsAck, type AnswerHeld } from '../../src/kernel/settle-policy.js'

const BOTH = [true, false] as const

describe('H2, scenario 29: fingerprints', () => {
  const steps: StepShape[] = [
    { name: 'a', kind: 'step' },
    { name: 'b', kind: 'ask' },
    { name: 'c', kind: 'form', fields: ['x', 'y'] },
  ]
  it('H2: are equal for equal shapes, whatever the code', () => {
    expect(fingerprintOf(steps)).toBe(fingerprintOf(structuredClone(steps)))
    expect(fingerprintOf(steps)).toMatch(/^[0-9a-f]{16}$/)
  })
  it.each([
    ['renamed', [{ name: 'z', kind: 'step' }, ...steps.slice(1)]],
    ['reordered', [...steps].reverse()],
    ['removed', steps.slice(1)],
    ['added', [...steps, { name: 'd', kind: 'do' }]],
    ['of another kind', [{ name: 'a', kind: 'do' }, ...steps.slice(1)]],
    ['another form', [...steps.slice(0, 2), { name: 'c', kind: 'form', fields: ['y', 'x'] }]],
    ['two steps made one', [{ name: 'a,b', kind: 'step' }, ...steps.slice(2)]],
  ] as [string, StepShape[]][])('H2: differ if a step is %s', (_what, changed) => {
    expect(fingerprintOf(changed)).not.toBe(fingerprintOf(steps))
  })
})

describe('hand-over policy: every combination', () => {
  const FINGERPRINT = 'same'
  const definitions = {
    unknown: null,
    flow: { kind: 'flow', persistent: false, steps: ['a', 'b'], fingerprint: FINGERPRINT },
    persistent: { kind: 'flow', persistent: true, steps: ['a', 'b'], fingerprint: FINGERPRINT },
    async: { kind: 'async', persistent: false, steps: [], fingerprint: '' },
  } as const satisfies Record<string, DefinitionFacts | null>
  const waits = { none: undefined, first: { question: 0, sends: 1 }, later: { question: 1, sends: 2 } }
  const marker: ConversationMarker = { v: 1, name: 'f', kind: 'async', reason: 'async' }

  function checkpoint(more: Partial<FlowCheckpoint>): FlowCheckpoint {
    return {
      v: 1,
      name: 'f',
      kind: 'flow',
      step: 'a',
      visit: 1,
      state: {},
      fingerprint: FINGERPRINT,
      revision: '1:1',
      ...more,
    }
  }

  /** What the requirements say, worded apart from the code. */
  function expected(
    left: FlowCheckpoint,
    definition: DefinitionFacts | null,
    forward: boolean,
  ): ArrivalDecision {
    const at = left.step === undefined ? {} : { step: left.step }
    if (definition === null) return { act: 'fallback', reason: 'changed', ...at } // nothing could resume it
    if (definition.kind !== left.kind) return { act: 'fallback', reason: 'changed', ...at }
    if (left.kind === 'async') return { act: 'fallback', reason: 'async' } // never migrated by themselves
    const gone = left.step !== 'a' && left.step !== 'b'
    const changed = left.fingerprint !== FINGERPRINT
    if (gone || (changed && left.ephemeral === true)) return { act: 'fallback', reason: 'changed', ...at } // H2
    return {
      act: 'resume',
      step: left.step as string,
      mode: left.answer ? 'kept' : left.wait?.question === 0 ? 'answer' : 'start-over', // H7, K1
      outcome: left.ephemeral === true ? 'forwarded' : 'resumed',
      forget: !definition.persistent && !forward, // H5
    }
  }

  it('K1, H1, H2, H5, H7: a checkpoint', () => {
    let cases = 0
    for (const definition of Object.values(definitions)) {
      for (const forward of BOTH)
        for (const ephemeral of BOTH)
          for (const fingerprint of [FINGERPRINT, 'other'])
            for (const step of ['a', 'b', 'gone', undefined])
              for (const wait of Object.values(waits))
                for (const answered of BOTH)
                  for (const kind of ['flow', 'async'] as const)
                    for (const withMarker of BOTH) {
                      const left = checkpoint({ fingerprint, kind })
                      if (step === undefined) delete left.step
                      else left.step = step
                      if (ephemeral) left.ephemeral = true
                      if (wait !== undefined) left.wait = wait
                      if (answered) left.answer = { recordId: 'm' }
                      if (kind === 'async') delete left.step
                      const stored = { checkpoint: left, marker: withMarker ? marker : null }
                      expect({ left, decision: decideArrival(stored, definition, forward) }).toEqual({
                        left,
                        decision: expected(left, definition, forward),
                      })
                      cases++
                    }
    }
    expect(cases).toBe(4 * 2 * 2 * 2 * 4 * 3 * 2 * 2 * 2)
  })

  it.each([
    ['async', 'async', 'async', 'async'],
    ['async', 'unknown', 'async', 'changed'],
    ['async', 'flow', 'async', 'changed'],
    ['flow', 'flow', 'state', 'state'],
    ['flow', 'persistent', 'changed', 'changed'],
    ['flow', 'async', 'state', 'changed'],
    ['flow', 'unknown', 'state', 'changed'],
  ] as const)('H6: a marker of kind %s, defined as %s, left for %s: %s', (kind, name, reason, result) => {
    for (const forward of BOTH) {
      const left: ConversationMarker = { ...marker, kind, reason, step: 'a' }
      expect(decideArrival({ checkpoint: null, marker: left }, definitions[name], forward)).toEqual({
        act: 'fallback',
        reason: result,
        step: 'a',
      })
    }
  })

  it('nothing stored: the message is routed', () => {
    for (const definition of Object.values(definitions)) {
      expect(decideArrival({ checkpoint: null, marker: null }, definition, true)).toEqual({ act: 'route' })
    }
  })
})

describe('settle policy', () => {
  const reasons: LeaseLostReason[] = ['expired', 'frozen', 'superseded', 'settled', 'revoked', 'stopped']

  it('H8: an acknowledgement is withheld only with durability, under a turn still held, for an answer nothing holds', () => {
    for (const reason of reasons)
      for (const answer of ['none', 'kept', 'unkept'] as AnswerHeld[])
        for (const durable of BOTH) {
          const withheld =
            (reason === 'stopped' && answer !== 'none') || (reason === 'settled' && answer === 'unkept')
          expect(withholdsAck({ reason, answer, durable })).toBe(durable && withheld)
        }
  })

  it('an uncaught error ends a conversation as lost, quietly or as failed', () => {
    expect(endingOf(new LeaseLostError('k', 'frozen'), 'k')).toBe('lost')
    expect(endingOf(new LeaseLostError('job:report', 'frozen'), 'k')).toBe('failed')
    expect(endingOf(new WaitTimeoutError('k', 1), 'k')).toBe('quiet')
    expect(endingOf(new TooManyAttemptsError('k', 1), 'k')).toBe('quiet')
    expect(endingOf(new Error('x'), 'k')).toBe('failed')
    expect(endingOf(undefined, 'k')).toBe('failed')
  })

  it('H1: what is left lives as long as its wait; H6: a marker is written at first and at half its life', () => {
    expect([ttlOf(5, null), ttlOf(5, undefined), ttlOf(5, 3), ttlOf(5, 9)]).toEqual([5, 5, 5, 9])
    expect(markerDue(null, 10)).toBe(true)
    expect(markerDue({ ageMs: 4, ttlMs: 10 }, 10)).toBe(false)
    expect(markerDue({ ageMs: 5, ttlMs: 10 }, 10)).toBe(true)
    expect(markerDue({ ageMs: 0, ttlMs: 10 }, 11)).toBe(true)
  })
})
