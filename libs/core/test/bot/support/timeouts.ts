/** What the tests of timeouts share: a question, and the death of whoever asked it. */
import type { Bot } from '../../../src/index.js'
import { Mesh, type MeshOptions, type Replica } from './mesh.js'

export const LEASE_MS = 3000
export const KEY = 'fake%3Atest/100'
export const TIMEOUT_MS = 60_000

/** Replicas with durability. */
export function durableMesh(define: (bot: Bot) => void, { config, ...others }: MeshOptions = {}): Mesh {
  return new Mesh(define, { leaseMs: LEASE_MS, ...others, config: { durability: true, ...config } })
}

/** Nothing of it goes on: neither its session nor its timers. */
export function kill(replica: Replica): void {
  replica.clock.pause()
  replica.coordinator.crash()
}

/** A question, then what comes of it being left open. */
export const asking =
  (persistent = true) =>
  (bot: Bot): void => {
    const flow = bot.flow('order', { on: 'order' }).step('size', async (c) => {
      await c.say(`Welcome, ${c.message.from}`)
      const size = await c.ask('Size?', { timeout: TIMEOUT_MS }).catch(() => null)
      await c.say(size === null ? `Too late, says ${bot.name}` : `Size ${size}`)
    })
    if (persistent) flow.persistent()
    bot.onMessage((ctx) => ctx.reply(`rest ${ctx.body}`))
  }
