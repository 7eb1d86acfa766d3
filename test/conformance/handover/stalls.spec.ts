/** That hand-overs are played again only where the machine stood still. */
import { describe, expect, it, jest } from '@jest/globals'
import { MemoryStore } from '@botmesh/core'
import { Stalls } from './stalls.js'

/** Wrong until the given time. */
function plays(stalls: Stalls, rightAt: number, meanwhile: () => Promise<void>, tolerableMs = 50) {
  let times = 0
  const once = async (): Promise<number> => {
    times += 1
    await meanwhile()
    return times
  }
  return stalls.play(once, (seen) => seen >= rightAt, { name: 'it', tolerableMs })
}

describe('scenario 5: where the machine stands still', () => {
  it('what came out wrong is played again, at most twice; else never', async () => {
    const said = jest.spyOn(console, 'warn').mockReturnValue(undefined)
    const store = new MemoryStore()
    const stalls = new Stalls()
    let answer: (() => void) | undefined
    let asked: () => void = () => undefined
    const write = store.setCheckpoint.bind(store)
    store.setCheckpoint = async (key, checkpoint) => {
      asked()
      if (answer !== undefined) await new Promise<void>((resolve) => (answer = resolve))
      await write(key, checkpoint)
    }
    stalls.watch(store)
    const next = () => new Promise<void>((resolve) => (asked = resolve))
    // No write takes that long.
    expect(await plays(stalls, 9, next, Infinity)).toBe(1)
    const stall = async () => {
      answer = () => undefined
      await next()
      await new Promise((resolve) => setTimeout(resolve, 80))
      answer()
      answer = undefined
    }
    expect(await plays(stalls, 2, stall)).toBe(2)
    expect(await plays(stalls, 9, stall)).toBe(3)
    expect(await plays(stalls, 1, stall)).toBe(1)
    await expect(plays(stalls, 9, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(said).toHaveBeenCalledTimes(3)
    said.mockRestore()
  })
})
