/** The code of docs/guides/scheduler.md: compiled, and compared with what the guide quotes. */
import { Bot, type Provider } from '@botmesh/core'
import { RedisStore } from '@botmesh/redis-store'
import type { Pool } from 'pg'

declare const provider: Provider
declare const db: Pool
declare function sendReport(day: Date, signal: AbortSignal): Promise<void>
declare function closeDay(db: Pool, day: Date, fence: number): Promise<boolean>
declare function refreshCache(): Promise<void>

export function declareTasks(): Bot {
  // --- tasks
  const store = new RedisStore({ url: process.env.REDIS_URL, prefix: 'shop' })
  const bot = new Bot({
    provider,
    store,
    coordination: { coordinator: store.coordinator() },
    scheduler: true,
  })

  bot.schedule('0 9 * * 1-5', { id: 'report', timeZone: 'Europe/Madrid' }, async (task) => {
    await sendReport(task.occurrence, task.signal)
  })
  bot.every('5m', { id: 'close', catchUp: 'skip' }, async (task) => {
    const done = await closeDay(db, task.occurrence, task.fence)
    if (!done) task.assertHeld() // A later leader was faster: says so.
  })
  bot.every('1m', refreshCache) // No id: on every replica.
  // --- end
  return bot
}

export function declareScheduler(store: RedisStore): Bot {
  // --- options
  const bot = new Bot({
    provider,
    store,
    scheduler: {
      lease: store.leases(), // Default: the coordinator; without coordination this.
      catchUp: 'last',
      graceMs: '2m',
      maxAttempts: 5,
      retryMs: '1s',
      maxRetryMs: '1m',
    },
  })
  bot.on('task:missed', ({ id, from, to }) =>
    console.warn(`${id}: nothing from ${from.toISOString()} to ${to.toISOString()}`),
  )
  bot.on('error', ({ error }) => console.error(error)) // TaskFailedError: task, occurrence, attempt, retryInMs
  // --- end
  return bot
}
