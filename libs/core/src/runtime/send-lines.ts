/**
 * The sends of one chat, in the order of the calls, also where nobody waits for the first before making the second: a
 * file takes longer than the text after it, and on most platforms each is a request of its own. Chats side by side;
 * a chat in which nothing is being sent takes no memory.
 */
import type { Clock } from '../contracts/clock.js'

/** Longest that a send waits for those before it, all together: one that never ends must not silence its chat. */
export const LONGEST_IN_LINE_MS = 120_000

export class SendLines {
  /** Resolves when everything before is over, or is not waited for any longer. */
  private readonly last = new Map<string, Promise<unknown>>()

  constructor(private readonly clock: Clock) {}

  /**
   * Sends at once if nothing of the chat is under way. Settles as `send` does.
   * @param signal gives up: what waits rejects with its reason, what is under way is not waited for by others.
   */
  run<T>(chatId: string, signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
    const before = this.last.get(chatId)
    const free = before === undefined ? undefined : this.bounded(before)
    const mine = free === undefined ? send() : orAborted(free, signal).then(send)
    const over = orAborted(mine, signal).then(noop, noop)
    const last = (free === undefined ? over : Promise.all([free, over])).then(() => {
      if (this.last.get(chatId) === last) this.last.delete(chatId)
    })
    this.last.set(chatId, last)
    return mine
  }

  /** Never rejects. */
  private bounded(before: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const limit = this.clock.setTimeout(resolve, LONGEST_IN_LINE_MS, { background: true })
      void before.then(() => {
        limit.cancel()
        resolve()
      })
    })
  }
}

/** Rejects with the signal's reason if it aborts first. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function noop(): void {}
