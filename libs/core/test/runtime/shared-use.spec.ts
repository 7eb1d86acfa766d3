/** Several bots that share one coordinator or store: who ends it. */
import { describe, expect, it } from '@jest/globals'
import { Bot, SessionCoordinator, silentLogger } from '../../src/index.js'
import { beginUse, endUse } from '../../src/runtime/shared-use.js'
import { FakeProvider, ManualClock, MemoryBackend, MemoryCoordinationHub } from '../../src/testing/index.js'

describe('several bots on one coordinator', () => {
  const ended = async (resource: object): Promise<boolean> => {
    let called = false
    await endUse(resource, async () => void (called = true))
    return called
  }

  it('the last one ends it, if a bot began it', async () => {
    const [mine, theirs] = [{}, {}]
    beginUse(mine, true)
    beginUse(mine, false)
    expect(await ended(mine)).toBe(false)
    expect(await ended(mine)).toBe(true)
    beginUse(theirs, false)
    expect(await ended(theirs)).toBe(false)
  })

  it('one that comes while the last one ends it ends what it begins, whatever the resource says of itself', async () => {
    const resource = {}
    beginUse(resource, true)
    let finish: () => void = () => undefined
    const ending = endUse(resource, () => new Promise((resolve) => (finish = resolve)))
    beginUse(resource, false)
    expect(await ended(resource)).toBe(true)
    finish()
    await ending
    beginUse(resource, false)
    expect(await ended(resource)).toBe(false)
  })

  it('the same while two are ended at once, of which the first takes longer', async () => {
    const resource = {}
    const finish: (() => void)[] = []
    const endings = [0, 1].map((n) => {
      beginUse(resource, n === 0)
      return endUse(resource, () => new Promise((resolve) => finish.push(resolve)))
    })
    finish[0]?.()
    await endings[0]
    expect(beginUse(resource, false)).toBe(true)
    finish[1]?.()
    await endings[1]
    expect(await ended(resource)).toBe(true)
  })

  it('N5: a bot that starts at any moment of the last one’s stop leaves no session behind', async () => {
    // In microtasks; a stop takes some twenty.
    for (let offset = 0; offset < 60; offset++) {
      const clock = new ManualClock()
      const backend = new MemoryBackend(new MemoryCoordinationHub({ clock }))
      const coordinator = new SessionCoordinator({ backend, clock })
      const [one, other] = ['one', 'other'].map(
        (name) =>
          new Bot({
            name,
            clock,
            logger: silentLogger,
            provider: new FakeProvider({ id: `fake:${name}` }),
            coordination: { coordinator },
          }),
      ) as [Bot, Bot]
      await one.start()
      const stopped = one.stop()
      for (let n = 0; n < offset; n++) await Promise.resolve()
      await Promise.all([other.start(), stopped])
      expect({ offset, status: coordinator.status.status }).toEqual({ offset, status: 'live' })
      await other.stop()
      expect({ offset, status: coordinator.status.status }).toEqual({ offset, status: 'stopped' })
    }
  })
})
