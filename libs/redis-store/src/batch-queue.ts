/**
 * Gathers the calls of one tick into one script call (two calls a turn, amortised over a tick). Entries are
 * independent: one that fails, fails alone. Bounded in count and bytes; the rest goes into the next call at once.
 */
import { StoreError } from '@botmesh/core'
import type { RedisLink } from './redis-link.js'
import type { Script } from './scripts.js'

/** Values that the reply lines announce, in their order. */
export interface Payloads {
  readonly values: readonly (string | null)[]
  at: number
}

export interface Entry<T> {
  /** Escaped. */
  chat: string
  /** '<letter><rest>': see the transitions' headers. */
  token: string
  /** Arguments after the token. */
  more?: readonly string[]
  /** '<chat> <inbound id>' to be looked up. */
  check?: string
  read(line: string, payloads: Payloads): T
}

interface Waiting extends Entry<unknown> {
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface BatchOptions {
  link: RedisLink
  script: Script
  holders: string
  base: string
  windowMs: number
  leaseMs(): number
  timeoutMs(): number
  /** Lines about tickets that no entry asked for. */
  onNews(session: string, lines: string[]): void
}

/** Below what a script can unpack (8,000), with room for what entries write. */
const MOST_ENTRIES = 250
const MOST_BYTES = 256 * 1024

export class BatchQueue {
  private entries: Waiting[] = []
  private chats = new Set<string>()
  private distinct = true
  private bytes = 0
  private session = ''
  private scheduled = false
  private readonly flushSoon = (): void => {
    this.scheduled = false
    this.flush()
  }

  constructor(private readonly options: BatchOptions) {}

  /** Adds an entry to this tick's call. @throws CoordinationUnavailableError if its fate is unknown; StoreError if it
   * was not acceptable. */
  add<T>(session: string, entry: Entry<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (session !== this.session || this.entries.length >= MOST_ENTRIES || this.bytes > MOST_BYTES)
        this.flush()
      this.session = session
      const waiting = entry as unknown as Waiting
      waiting.resolve = resolve as (value: unknown) => void
      waiting.reject = reject
      this.entries.push(waiting)
      if (this.distinct) {
        if (this.chats.has(entry.chat)) this.distinct = false
        else this.chats.add(entry.chat)
      }
      if (entry.more) for (const text of entry.more) this.bytes += text.length
      if (this.scheduled) return
      this.scheduled = true
      // After the promise callbacks of this tick, whose continuations make more calls.
      process.nextTick(this.flushSoon)
    })
  }

  private flush(): void {
    const { entries, session, distinct } = this
    if (entries.length === 0) return
    this.entries = []
    this.chats = new Set()
    this.distinct = true
    this.bytes = 0
    this.send(session, entries, distinct, this.options.link).catch((error: unknown) => {
      for (const entry of entries) entry.reject(error)
    })
  }

  /** Sends entries as one call of their own, on any connection; used by the heartbeat, which does not wait for a tick. */
  async call(session: string, entries: Entry<unknown>[], link: RedisLink): Promise<unknown[]> {
    const results: unknown[] = []
    const waiting = entries.map((entry, index) => ({
      ...entry,
      resolve: (value: unknown) => void (results[index] = value),
      reject: (error: unknown) => void (results[index] = error),
    }))
    await this.send(session, waiting, false, link)
    return results
  }

  private async send(session: string, entries: Waiting[], distinct: boolean, link: RedisLink): Promise<void> {
    const args = this.argumentsOf(session, entries, distinct)
    const reply = (await link.eval(this.options.script, args, this.options.timeoutMs())) as (string | null)[]
    this.distribute(session, entries, reply)
  }

  private argumentsOf(session: string, entries: Waiting[], distinct: boolean): string[] {
    const { base, holders, windowMs, leaseMs } = this.options
    const count = entries.length
    const args = [
      '1',
      holders,
      base,
      session,
      String(leaseMs()),
      String(windowMs),
      distinct ? '1' : '0',
      String(count),
      '0',
    ]
    for (const entry of entries) args.push(entry.chat)
    let checks = 0
    for (const { check } of entries) {
      if (check === undefined) continue
      args.push(check)
      checks += 1
    }
    args[8] = String(checks)
    for (const { token, more } of entries) {
      args.push(token)
      if (more) for (const text of more) args.push(text)
    }
    return args
  }

  private distribute(session: string, entries: Waiting[], reply: (string | null)[]): void {
    const lines = (reply[0] ?? '').split('\n')
    const payloads: Payloads = { values: reply, at: 1 }
    for (let index = 0; index < entries.length; index += 1) {
      const entry = entries[index]
      const line = lines[index] ?? ''
      if (!entry) continue
      if (line.charCodeAt(0) === 33) entry.reject(refusal(line))
      else entry.resolve(entry.read(line, payloads))
    }
    if (lines.length > entries.length) this.options.onNews(session, lines.slice(entries.length))
  }
}

function refusal(line: string): Error {
  return new StoreError(`Redis could not apply this entry: ${line.slice(1)}`, {
    store: 'redis',
    operation: 'entry',
  })
}
