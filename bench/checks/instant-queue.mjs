/** A contender for queue-process.mjs that needs no server: what is enqueued is handed to the handler at once. */
import { setImmediate as next } from 'node:timers/promises'

export async function start({ handle }) {
  let works
  const begun = new Promise((resolve) => (works = resolve))
  const pass = async (message) => {
    await begun
    await next()
    await handle(message)
  }
  return {
    enqueue: async (_key, message) => void pass(message),
    work: () => works(),
    stop: async () => undefined,
  }
}
