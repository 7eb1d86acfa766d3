/**
 * One connection to the mailbox. Every call is bounded by `answerMs`: a server that has not answered by then counts
 * as gone, and the connection is closed (scenario 24).
 *
 * What was dealt with is marked in the mailbox itself, so that the next leader sees it: `\Seen` and the keyword
 * `$BotmeshDone` once the runtime has accepted a mail, `\Answered` once it was answered.
 */
import { ImapFlow, type FetchMessageObject } from 'imapflow'
import type { Clock } from '@botmesh/core'
import { readIds } from './addresses.js'
import { NoAnswerError } from './mail-errors.js'
import type { EmailSettings } from './options.js'

/** Mail that the bot has not dealt with. */
export interface Pending {
  uid: number
  sizeBytes: number
}

export const DONE = '$BotmeshDone'
const GOODBYE_MS = 600
const IDLE_AGAIN_MS = 1_000
const MAX_PENDING = 200
/** How many mails of one person are looked through for a thread. */
const MAX_LOOKED_THROUGH = 100
/** A mail is larger on its way than its files. */
const OVERHEAD_BYTES = 1024 * 1024

export class ImapClient {
  private readonly flow: ImapFlow
  private arrived = false
  private wake: (() => void) | undefined
  private over = false
  private readonly closed: Promise<void>

  constructor(
    private readonly settings: EmailSettings & { imap: NonNullable<EmailSettings['imap']> },
    private readonly clock: Clock,
    auth: { user: string; pass?: string; accessToken?: string },
  ) {
    const { imap, answerMs, checkMs, maxMessageBytes } = settings
    this.flow = new ImapFlow({
      host: imap.host,
      port: imap.port,
      secure: imap.security === 'tls',
      ...(imap.security === 'tls' ? {} : { doSTARTTLS: imap.security === 'starttls' }),
      ...(imap.ca.length === 0 ? {} : { tls: { ca: imap.ca } }),
      auth,
      logger: false,
      disableAutoIdle: true,
      // Compression would hide from a proxy, and costs more than mail of this size gains.
      disableCompression: true,
      connectionTimeout: answerMs,
      greetingTimeout: answerMs,
      socketTimeout: checkMs + 2 * answerMs,
      maxIdleTime: checkMs + answerMs,
      maxLiteralSize: maxMessageBytes + OVERHEAD_BYTES,
      maxResponseSize: 2 * (maxMessageBytes + OVERHEAD_BYTES),
    })
    this.flow.on('exists', () => this.call())
    // What fails is told by the call that waits; at a time when none does, `wait` sees that it is closed.
    this.flow.on('error', () => this.call())
    this.closed = new Promise((resolve) =>
      this.flow.once('close', () => {
        this.over = true
        resolve()
        this.call()
      }),
    )
  }

  get isClosed(): boolean {
    return this.over
  }

  /** Logs in and opens the mailbox. @returns its UIDVALIDITY: another one, and its numbers mean other mail. */
  async open(): Promise<string> {
    await this.bounded(this.flow.connect(), 3)
    const mailbox = await this.bounded(this.flow.mailboxOpen(this.settings.imap.mailbox))
    return String(mailbox.uidValidity)
  }

  /** Unread mail that neither this bot nor a person has dealt with, the oldest first; at most 200 at once. */
  async pending(): Promise<Pending[]> {
    this.arrived = false
    const since = this.clock.now() - this.settings.maxAgeMs
    // IMAP looks for days, by the server's own: one more than needed, and then to the second.
    const day = new Date(since - 24 * 3_600_000)
    const query = { seen: false, answered: false, deleted: false, draft: false, unKeyword: DONE, since: day }
    const found = await this.bounded(this.flow.search(query, { uid: true }))
    if (!Array.isArray(found) || found.length === 0) return []
    const uids = found.toSorted((a, b) => a - b).slice(0, MAX_PENDING)
    const about = await this.fetch(uids, { uid: true, size: true, internalDate: true })
    return about
      .filter(({ internalDate }) => internalDate === undefined || new Date(internalDate).getTime() >= since)
      .map(({ uid, size }) => ({ uid, sizeBytes: size ?? 0 }))
      .toSorted((a, b) => a.uid - b.uid)
  }

  /** @returns the mail's first bytes; null if it is there no more. */
  async source(uid: number, maxBytes: number): Promise<Uint8Array | null> {
    const query = { uid: true, source: { start: 0, maxLength: maxBytes } }
    const message = await this.bounded(this.flow.fetchOne(String(uid), query, { uid: true }), 6)
    return message === false ? null : (message.source ?? null)
  }

  /** Marks mail as dealt with. */
  async markDone(uids: readonly number[]): Promise<void> {
    if (uids.length > 0) await this.flag(uids, ['\\Seen', DONE])
  }

  /**
   * Marks a mail as answered. @returns false if it is not in the mailbox.
   * @param known its number, if that is known: looking for a Message-ID takes long in a large mailbox
   */
  async markAnswered(messageId: string, known: number | null): Promise<boolean> {
    const uids = known === null ? await this.withId(messageId) : [known]
    if (uids.length > 0) await this.flag(uids, ['\\Answered', '\\Seen', DONE])
    return uids.length > 0
  }

  /** The mail with this Message-ID. @returns null if it is not in the mailbox, or too large. */
  async byId(messageId: string): Promise<Uint8Array | null> {
    const [uid] = await this.withId(messageId)
    return uid === undefined ? null : this.source(uid, this.settings.maxMessageBytes)
  }

  /** Heads of the last mails from this address, the newest first: to find a thread again after a hand-over. */
  async headsFrom(address: string): Promise<Uint8Array[]> {
    const query = { or: [{ from: address }, { header: { 'reply-to': address } }] }
    const found = await this.bounded(this.flow.search(query, { uid: true }))
    if (!Array.isArray(found) || found.length === 0) return []
    const uids = found.toSorted((a, b) => b - a).slice(0, MAX_LOOKED_THROUGH)
    const heads = await this.fetch(uids, { uid: true, headers: true })
    return heads
      .toSorted((a, b) => b.uid - a.uid)
      .map(({ headers }) => headers)
      .filter((head) => head !== undefined)
  }

  /** Resolves when mail may have come, after `checkMs` at the latest, when closed, or when `signal` aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.arrived || this.over || signal.aborted) return
    await new Promise<void>((resolve) => {
      let timer = this.clock.setTimeout(() => end(), this.settings.checkMs)
      const end = () => {
        timer.cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      this.wake = end
      signal.addEventListener('abort', end, { once: true })
      // The next command ends it, whoever gives it: then it has to be begun again. A server that does not idle at all
      // is asked as often.
      const idleEnded = () => {
        if (this.wake !== end) return
        timer.cancel()
        timer = this.clock.setTimeout(end, Math.min(IDLE_AGAIN_MS, this.settings.checkMs))
      }
      void this.flow.idle().then(idleEnded, idleEnded)
    })
    this.wake = undefined
  }

  /** Disconnects, and waits until it has. @param polite true: takes leave of the server first, within 600 ms. */
  async close(polite: boolean): Promise<void> {
    if (polite && !this.over) {
      const goodbye = this.flow.logout().catch(() => {})
      await Promise.race([goodbye, this.after(GOODBYE_MS)])
    }
    this.flow.close()
    await Promise.race([this.closed, this.after(GOODBYE_MS)])
  }

  private call(): void {
    this.arrived = true
    this.wake?.()
  }

  private async withId(messageId: string): Promise<number[]> {
    const query = { header: { 'message-id': messageId } }
    const found = await this.bounded(this.flow.search(query, { uid: true }))
    if (!Array.isArray(found) || found.length === 0) return []
    // The search finds parts of a header too: only what is the same counts.
    const heads = await this.fetch(found.slice(-5), { uid: true, headers: ['message-id'] })
    return heads
      .filter(({ headers }) => readIds(headers?.toString() ?? '').includes(messageId))
      .map(({ uid }) => uid)
  }

  private fetch(
    uids: readonly number[],
    query: Parameters<ImapFlow['fetchAll']>[1],
  ): Promise<FetchMessageObject[]> {
    return this.bounded(this.flow.fetchAll(uids.join(','), query, { uid: true }), 3)
  }

  private async flag(uids: readonly number[], flags: string[]): Promise<void> {
    await this.bounded(this.flow.messageFlagsAdd(uids.join(','), flags, { uid: true }))
  }

  /** @param times how many times `answerMs` it may take: for what is more than one question. */
  private async bounded<T>(answer: Promise<T>, times = 1): Promise<T> {
    const ms = this.settings.answerMs * times
    let timer: { cancel(): void } | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.clock.setTimeout(() => reject(new NoAnswerError(`no answer within ${ms} ms`)), ms)
    })
    try {
      return await Promise.race([answer, late])
    } catch (error) {
      answer.catch(() => {}) // It fails once more when the connection is closed below.
      if (error instanceof NoAnswerError) this.flow.close()
      throw error
    } finally {
      timer?.cancel()
    }
  }

  private after(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimeout(resolve, ms, { background: true }))
  }
}
