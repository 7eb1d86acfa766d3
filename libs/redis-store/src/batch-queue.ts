/**
 * Gathers the calls of one tick into one script call (two calls a turn, amortised over a tick). Entries are
 * independent: one that fails, fails alone. Bounded in count and bytes; the rest goes into the next call at once.
 */
import { CoordinationUnavailableError, StoreError } from '@botmesh/core'
import { atEndOfTick, CallPace } from './call-pace.js'
import type { Line } from './line.js'
import { whyNotNow } from './not-now.js'
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
  more?: readonly string[] | undefined
  /** '<chat> <inbound id>' to be looked up. */
  check?: string | undefined
  read(line: string, payloads: Payloads): T
  /** True: another entry of the same call concerns the same chat, so no short cut may be taken. */
  shared?: boolean
  /** It needs no look at the chat's trace, whichever way it is applied. */
  quiet?: boolean
  /** It may make room for somebody who waits. */
  contended?: boolean
  /** Set by the queue while the entry is in it. */
  resolve?(value: T): void
  reject?(error: unknown): void
}

type Waiting = Entry<unknown>

/** Lines, and payloads behind them; lines alone where there is but one entry and nothing is announced. */
type Reply = string | (string | null)[]

export interface BatchOptions {
  link: Line
  script: Script
  holders: string
  base: string
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
  /** The first entry of each chat in this call. */
  private chats: Map<string, Waiting> | null = null
  private bytes = 0
  private session = ''
  private scheduled = false
  private readonly pace = new CallPace()
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
      entry.resolve = resolve
      entry.reject = reject
      if (this.pace.atOnce && this.entries.length === 0) {
        this.send(session, [entry], this.options.link)
        return
      }
      this.entries.push(entry)
      if (this.entries.length > 1) this.noteChat(entry)
      if (entry.more) for (const text of entry.more) this.bytes += text.length
      if (this.scheduled) return
      this.scheduled = true
      atEndOfTick(this.flushSoon)
    })
  }

  /** The scripts' short cuts rely on it that no other entry of the call concerns the same chat. */
  private noteChat(entry: Waiting): void {
    const [first] = this.entries
    const chats = (this.chats ??= new Map(first && [[first.chat, first]]))
    const other = chats.get(entry.chat)
    if (other === undefined) chats.set(entry.chat, entry)
    else other.shared = entry.shared = true
  }

  private flush(): void {
    const { entries, session } = this
    if (entries.length === 0) return
    this.entries = []
    this.chats = null
    this.bytes = 0
    this.send(session, entries, this.options.link)
  }

  /** Sends entries as one call of their own, on any connection; used by the heartbeat, which does not wait for a tick. */
  async call(session: string, entries: Entry<unknown>[], link: Line): Promise<unknown[]> {
    const { options } = this
    const results: unknown[] = []
    entries.forEach((entry, index) => {
      entry.shared = true
      entry.resolve = (value) => void (results[index] = value)
      entry.reject = (error) => void (results[index] = error)
    })
    const reply = await link.eval(options.script, this.argumentsOf(session, entries), options.timeoutMs())
    this.distribute(session, entries, reply as Reply, link)
    return results
  }

  /** Settles every entry, whatever happens; never throws. */
  private send(session: string, batch: Waiting[], link: Line): void {
    const entries = batch.length === 1 ? batch : quietFirst(batch)
    this.pace.began(entries.length)
    const failed = (error: unknown): void => {
      for (const entry of entries) entry.reject?.(error)
    }
    this.ask(session, entries, link).then(
      (reply) => {
        this.pace.ended()
        try {
          this.distribute(session, entries, reply as Reply, link)
        } catch (error) {
          failed(error)
        }
      },
      (error: unknown) => {
        this.pace.ended()
        failed(error)
      },
    )
  }

  private ask(session: string, entries: Waiting[], link: Line): Promise<unknown> {
    const { options } = this
    try {
      const args = this.argumentsOf(session, entries)
      return link.eval(options.script, args, options.timeoutMs(), pushesFirst(entries))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  private argumentsOf(session: string, entries: Waiting[]): string[] {
    const { base, holders } = this.options
    const leaseMs = String(this.options.leaseMs())
    const count = entries.length
    const args = ['1', holders, base, session, leaseMs, '0', String(count), '0']
    let quiet = 0
    let checks = 0
    for (const entry of entries) {
      args.push(entry.chat)
      if (entry.quiet && !entry.shared) quiet += 1
    }
    for (const { check } of entries) {
      if (check === undefined) continue
      args.push(check)
      checks += 1
    }
    args[5] = String(quiet)
    args[7] = String(checks)
    for (const { token, more, shared } of entries) {
      args.push(shared ? withoutShortCut(token) : token)
      if (more) for (const text of more) args.push(text)
    }
    return args
  }

  private distribute(session: string, entries: Waiting[], reply: Reply, link: Line): void {
    const values = typeof reply === 'string' ? [reply] : reply
    const lines = (values[0] ?? '').split('\n')
    const payloads: Payloads = { values, at: 1 }
    for (let index = 0; index < entries.length; index += 1) {
      const entry = entries[index]
      const line = lines[index] ?? ''
      if (!entry) continue
      if (line.charCodeAt(0) === 33) entry.reject?.(refusal(line, link))
      else entry.resolve?.(entry.read(line, payloads))
    }
    if (lines.length > entries.length) this.options.onNews(session, lines.slice(entries.length))
  }
}

/** Where many are under way there is enough to do meanwhile, and who is told first matters less than what it costs. */
function pushesFirst(entries: readonly Waiting[]): boolean {
  return entries.length === 1 && entries[0]?.contended === true
}

/** The letter 32 places further on in the alphabet: small letters are those without the short cut. */
function withoutShortCut(token: string): string {
  return String.fromCharCode(token.charCodeAt(0) + 32) + token.slice(1)
}

/** The script looks traces up for the others alone, which therefore stand together. Entries are independent of each
 * other, and those that share a chat are never quiet, so their order remains. */
function quietFirst(entries: Waiting[]): Waiting[] {
  const isQuiet = (entry: Waiting): boolean => entry.quiet === true && !entry.shared
  const first = entries.findIndex((entry) => !isQuiet(entry))
  if (first < 0 || !entries.some((entry, index) => index > first && isQuiet(entry))) return entries
  return [...entries.filter(isQuiet), ...entries.filter((entry) => !isQuiet(entry))]
}

function refusal(line: string, link: Line): Error {
  // The entry had no effect and is to be repeated.
  if (whyNotNow(line.slice(1)) !== null) {
    if (line.includes('READONLY')) link.renew()
    const where = `Redis at ${link.place}`
    return new CoordinationUnavailableError('unreachable', { where, cause: new Error(line.slice(1)) })
  }
  return new StoreError(`Redis could not apply this entry: ${line.slice(1)}`, {
    store: 'redis',
    operation: 'entry',
  })
}
