/** When the message log looks for news, and what it says while it cannot: on a link that the test answers for. */
import { describe, expect, it } from '@jest/globals'
import { silentLogger } from '@botmesh/core'
import { ManualClock } from '@botmesh/core/testing'
import type { MongoLink } from '../src/mongo-link.js'
import { MongoLog } from '../src/mongo-log.js'

function bench() {
  const clock = new ManualClock()
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (_: object, text: string) => void warnings.push(text) }
  const answers = { looks: 0, next: async () => new Map<string, number>() }
  const run = async (operation: string) => {
    if (operation === 'look') answers.looks += 1
    return answers.next()
  }
  const log = new MongoLog({ options: { clock, logger }, run } as unknown as MongoLink)
  return { clock, warnings, answers, log }
}

const none = async () => new Map<string, number>()

describe('the log’s polling', () => {
  it('is one, also where the last subscriber leaves and another comes while it looks', async () => {
    const { clock, answers, log } = bench()
    const leave = await log.subscribe('a', () => undefined)
    let answer: () => void = () => undefined
    answers.next = () => new Promise((resolve) => (answer = () => resolve(new Map())))
    await clock.advance(200)
    const left = leave()
    answers.next = none
    const leaveAgain = await log.subscribe('b', () => undefined)
    await clock.settle()
    answer()
    await left
    answers.looks = 0
    await clock.advance(2000)
    expect(answers.looks).toBeLessThanOrEqual(10)
    expect(answers.looks).toBeGreaterThanOrEqual(9)
    await leaveAgain()
    await clock.advance(1000)
    expect(clock.timers).toBe(0)
  })

  it('says once that it cannot look, not at each look of an outage', async () => {
    const { clock, answers, log, warnings } = bench()
    await log.subscribe('a', () => undefined)
    const down = () => Promise.reject(new Error('down'))
    answers.next = down
    await clock.advance(5000)
    expect(warnings).toHaveLength(1)
    answers.next = none
    await clock.advance(1000)
    answers.next = down
    await clock.advance(5000)
    expect(warnings).toHaveLength(2)
    await log.close()
    expect(clock.timers).toBe(0)
  })
})
