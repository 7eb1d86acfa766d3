/**
 * A platform that delivers to whichever replica is up, and delivers again what was not acknowledged; and people who
 * write over it, each of whom knows what they must be told.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { waitFor } from '../support/index.js'
import type { BotReplica, Crew } from '../e2e/support/bots.js'

/** What a chat must have heard in the end, exactly. */
export interface Expected {
  chat: string
  replies: string[]
}

const THINKING_MS = 60
const PATIENCE_MS = 20_000

export class Platform {
  private next = 0

  /** @param up replicas that messages are spread over; changed by the test as they come and go. */
  constructor(
    private readonly crew: Crew,
    private readonly up: readonly BotReplica[],
  ) {}

  /** Writes without waiting for answers. */
  async chatter(chat: string, goOn: () => boolean): Promise<Expected> {
    const replies: string[] = []
    for (let n = 1; goOn(); n += 1) {
      await this.deliver(chat, `${chat} says ${n}`)
      replies.push(`echo ${chat} says ${n}`)
      await delay(THINKING_MS)
    }
    return { chat, replies }
  }

  /** Has its own state counted up, without waiting either. */
  async counter(chat: string, goOn: () => boolean): Promise<Expected> {
    const replies: string[] = []
    for (let n = 1; goOn(); n += 1) {
      await this.deliver(chat, 'count')
      replies.push(`count ${n}`)
      await delay(THINKING_MS)
    }
    return { chat, replies }
  }

  /** Orders again and again, answering each question once it was asked. */
  async buyer(chat: string, goOn: () => boolean): Promise<Expected> {
    const replies: string[] = []
    const say = async (text: string, reply: string) => {
      await this.deliver(chat, text)
      replies.push(reply)
      await waitFor(() => this.crew.said(chat).length >= replies.length, {
        what: `"${reply}" in ${chat}, after ${JSON.stringify(this.crew.said(chat).slice(-3))}`,
        timeoutMs: PATIENCE_MS,
      })
      await delay(THINKING_MS)
    }
    for (let n = 1; goOn(); n += 1) {
      await say('order', 'size?')
      await say(`S${n}`, 'color?')
      await say('red', `ordered S${n} red`)
    }
    return { chat, replies }
  }

  /** To one replica after the other until one has acknowledged it. */
  private async deliver(chat: string, text: string): Promise<void> {
    const id = `${chat}-${this.crew.id()}`
    const deadline = performance.now() + PATIENCE_MS
    while (performance.now() < deadline) {
      const replica = this.up[this.next++ % this.up.length]
      if (replica !== undefined && (await acknowledged(replica, chat, text, id))) return
      await delay(10)
    }
    throw new Error(`No replica took "${text}" of ${chat}.`)
  }
}

/** False: it refused, or was gone before it answered. */
async function acknowledged(replica: BotReplica, chat: string, text: string, id: string): Promise<boolean> {
  replica.write(chat, text, id)
  const answer = replica.of('answered', id, { timeoutMs: 5000 })
  return answer.then(
    ({ accepted }) => accepted === true,
    () => false,
  )
}
