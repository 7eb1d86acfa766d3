/**
 * What answers need to know of the threads they continue: remembered here; what is not, another replica may have noted
 * in the store's log, or the mailbox still has.
 */
import type { Clock, MessageLog } from '@botmesh/core'
import { z } from 'zod'
import type { ThreadState } from './parse-inbound.js'

interface Remembered {
  state: ThreadState | null
  /** When mails were sent to it, within the last hour. */
  sentAt: number[]
}

const MAX_THREADS = 10_000
const HOUR_MS = 3_600_000
const NOTED_MS = 30 * 24 * HOUR_MS

const noted = z.object({
  subject: z.string(),
  lastId: z.string(),
  references: z.array(z.string()),
})

export class Threads {
  private readonly known = new Map<string, Remembered>()

  constructor(private readonly provider: string) {}

  /** A mail came in this chat. */
  remember(chatId: string, state: ThreadState): void {
    this.of(chatId).state = state
  }

  recall(chatId: string): ThreadState | null {
    return this.known.get(chatId)?.state ?? null
  }

  /** The bot has written. */
  sent(chatId: string, clock: Clock): void {
    this.of(chatId).sentAt.push(clock.monotonic())
  }

  /** Mails to this chat in the last hour. */
  recentlySent(chatId: string, clock: Clock): number {
    const thread = this.known.get(chatId)
    if (thread === undefined) return 0
    const from = clock.monotonic() - HOUR_MS
    thread.sentAt = thread.sentAt.filter((at) => at > from)
    return thread.sentAt.length
  }

  /** For the other replicas, where no mailbox keeps the mail. */
  async note(log: MessageLog, chatId: string, state: ThreadState): Promise<void> {
    await log.append(this.channel(chatId), JSON.stringify(state), { keep: 1, ttlMs: NOTED_MS })
  }

  async lookUp(log: MessageLog, chatId: string): Promise<ThreadState | null> {
    const last = (await log.read(this.channel(chatId), null)).at(-1)
    if (last === undefined) return null
    const read = noted.safeParse(JSON.parse(last.payload))
    return read.success ? read.data : null
  }

  private of(chatId: string): Remembered {
    const thread = this.known.get(chatId) ?? { state: null, sentAt: [] }
    // Those that were used last stay longest.
    this.known.delete(chatId)
    this.known.set(chatId, thread)
    const [oldest] = this.known.keys()
    if (this.known.size > MAX_THREADS && oldest !== undefined) this.known.delete(oldest)
    return thread
  }

  private channel(chatId: string): string {
    return `email-thread:${this.provider}:${chatId}`
  }
}
