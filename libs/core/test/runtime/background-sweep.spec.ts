/** Cleaning up in the background of a store, and a store that is closed meanwhile. */
import { describe, expect, it } from '@jest/globals'
import { BackgroundSweep, silentLogger } from '../../src/index.js'
import { ManualClock, SeededRandom } from '../../src/testing/index.js'

const MINUTES = 600_000

/** Each portion ends when the test says so. */
class HeldSweep extends BackgroundSweep {
  readonly portionsBegun: ((more: boolean) => void)[] = []

  constructor(clock: ManualClock) {
    super({ clock, random: new SeededRandom(1), logger: silentLogger }, 'things')
  }

  protected sweep(): Promise<void> {
    return this.portions(() => new Promise((resolve) => this.portionsBegun.push(resolve)))
  }
}

describe('S1: what has had its time is removed in portions', () => {
  it('until there is no more, and again a minute later', async () => {
    const clock = new ManualClock()
    const sweep = new HeldSweep(clock)
    sweep.hint()
    expect(sweep.portionsBegun).toHaveLength(0)
    await clock.advance(MINUTES)
    sweep.hint()
    sweep.hint()
    sweep.portionsBegun[0]?.(true)
    await clock.settle()
    sweep.portionsBegun[1]?.(false)
    await clock.settle()
    expect(sweep.portionsBegun).toHaveLength(2)
    sweep.hint()
    expect(sweep.portionsBegun).toHaveLength(2)
    await clock.advance(MINUTES)
    sweep.hint()
    expect(sweep.portionsBegun).toHaveLength(3)
  })

  it('a store that is closed waits for one portion, not for all; opened again it goes on', async () => {
    const clock = new ManualClock()
    const sweep = new HeldSweep(clock)
    await clock.advance(MINUTES)
    sweep.hint()
    const done: string[] = []
    let finish: () => void = () => undefined
    const close = () => new Promise<void>((resolve) => (finish = resolve))
    // It may be closed twice at once.
    const closed = [
      sweep.paused(async () => void done.push('first')),
      sweep.paused(close).then(() => done.push('second')),
    ]
    await clock.settle()
    expect(done).toEqual([])
    sweep.portionsBegun[0]?.(true)
    await closed[0]
    await clock.advance(MINUTES)
    // A commit under way ends.
    sweep.hint()
    expect([done, sweep.portionsBegun.length]).toEqual([['first'], 1])
    finish()
    await closed[1]
    sweep.hint()
    expect(sweep.portionsBegun).toHaveLength(2)
  })
})
