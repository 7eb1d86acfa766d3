/** What a scheduler does with its leadership: when it ends from outside, and what it leaves on it. */
import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Leadership, TaskContext } from '../../src/index.js'
import { Mesh } from '../bot/support/mesh.js'

const MINUTE = 60_000
let mesh: Mesh
afterEach(() => mesh.stop())

describe('J1: the leadership of a scheduler', () => {
  it('a coordinator that is stopped under a run tells the run: its successor has begun', async () => {
    const runs: TaskContext[] = []
    mesh = new Mesh(
      (bot) =>
        void bot.schedule('* * * * *', { id: 'report' }, (task) => {
          runs.push(task)
          return new Promise((resolve) => task.signal.addEventListener('abort', resolve))
        }),
      { config: { scheduler: true } },
    )
    const [a, b] = [await mesh.add(), await mesh.add()]
    await mesh.until(() => runs.length > 0, 2 * MINUTE)
    await mesh.run(a.coordinator.stop())
    await mesh.until(() => runs.length > 1, MINUTE)
    expect(runs[0]?.signal.aborted).toBe(true)
    expect(() => runs[0]?.assertHeld()).toThrow()
    expect(runs[1]).toMatchObject({ attempt: 2 })
    expect(runs[1]?.signal.aborted).toBe(false)
    expect([...a.errors, ...b.errors]).toEqual([])
  })

  it('tasks that come and go leave nothing with a leadership that stays', async () => {
    mesh = new Mesh(() => undefined, { config: { scheduler: true } })
    const { bot, coordinator } = mesh.prepare()
    const { elections } = coordinator
    const campaign = elections.campaign.bind(elections)
    let led: Leadership | undefined
    elections.campaign = (name, listener) =>
      campaign(name, { ...listener, onLead: (leadership) => listener.onLead((led = leadership)) })
    await mesh.run(bot.start())
    bot.schedule('* * * * *', { id: 'stays' }, () => undefined)
    await mesh.until(() => led !== undefined, MINUTE)
    for (let n = 0; n < 20; n += 1) {
      const task = bot.every('1h', { id: `task ${n}` }, () => undefined)
      await mesh.settle()
      task.stop()
    }
    await mesh.settle()
    expect(getEventListeners(led?.signal as AbortSignal, 'abort')).toHaveLength(1)
  })
})
