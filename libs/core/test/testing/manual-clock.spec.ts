/** The clock that a test moves, and chance that can be repeated. */
import { describe, expect, it } from '@jest/globals'
import { ManualClock, SeededRandom } from '@botmesh/core/testing'

describe('ManualClock', () => {
  it('fires timers in the order of their time, and what they settle in between', async () => {
    const clock = new ManualClock()
    const order: string[] = []
    clock.setTimeout(() => order.push('late'), 20)
    clock.setTimeout(() => {
      order.push('early')
      void Promise.resolve().then(() => clock.setTimeout(() => order.push('between'), 5))
    }, 10)
    clock.setTimeout(() => order.push('never'), 15).cancel()
    await clock.advance(30)
    expect(order).toEqual(['early', 'between', 'late'])
    expect(clock.monotonic()).toBe(30)
  })

  it('L2: freezing lets time pass without timers, which then fire late', async () => {
    const clock = new ManualClock()
    let firedAt = 0
    clock.setTimeout(() => (firedAt = clock.monotonic()), 10)
    clock.freeze(100)
    expect(firedAt).toBe(0)
    await clock.advance(1)
    expect(firedAt).toBe(100)
  })

  it('advanceUntil says how long it took, and gives up', async () => {
    const clock = new ManualClock(0)
    let done = false
    clock.setTimeout(() => (done = true), 40)
    expect(await clock.advanceUntil(() => done)).toBe(40)
    await expect(clock.advanceUntil(() => false, 100)).rejects.toThrow('100 ms')
    clock.shiftWall(-1000)
    expect(clock.now()).toBe(-960)
  })
})

describe('SeededRandom', () => {
  it('the same seed gives the same numbers and names', () => {
    const [a, b] = [new SeededRandom(7), new SeededRandom(7)]
    expect([a.next(), a.int(10), a.uuid()]).toEqual([b.next(), b.int(10), b.uuid()])
    expect(a.uuid()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })
})
