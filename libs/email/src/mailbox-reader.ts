/**
 * Reads what is unread in the mailbox, hands it to the runtime in the mailbox's order, and marks what was accepted.
 * What was not accepted stays unread and is tried again; what follows it in its chat waits (T2).
 */
import { chatKeyOf, deliverInOrder, isOrderlyStop, type Message } from '@botmesh/core'
import type { ImapClient, Pending } from './imap.client.js'
import { parseInbound, type EmailEvent } from './parse-inbound.js'
import { readMail, type Mail } from './read-mail.js'
import type { SessionParts } from './session.js'

/** Of a mail that is too large only this much is read: its text, if that comes first. */
const TEXT_BYTES = 256 * 1024
/** Mails are read into memory in batches of this size. */
const BATCH_BYTES = 32 * 1024 * 1024
const BATCH_MAILS = 50
const MAX_REMEMBERED = 2_000

interface Read {
  uid: number
  mail: Mail | null
  event: EmailEvent
}

export class MailboxReader {
  /** Accepted or ignored, but not marked: the mark failed. Not handed over again. */
  private readonly unmarked = new Set<number>()
  /** Message-IDs that were dealt with in this session, for what comes again after the marks were lost; by number. */
  private readonly dealtWith = new Map<string, number | null>()

  constructor(
    private readonly parts: SessionParts,
    private readonly halt: AbortSignal,
    private readonly lostLeadership: () => boolean,
  ) {}

  /** The mailbox was made anew. */
  forgetNumbers(): void {
    this.unmarked.clear()
    for (const id of this.dealtWith.keys()) this.dealtWith.set(id, null)
  }

  /** The number of a mail that came in; null if it is not known. */
  numberOf(messageId: string): number | null {
    return this.dealtWith.get(messageId) ?? null
  }

  /** @returns false if the runtime did not accept everything. @throws what the connection throws */
  async deal(client: ImapClient): Promise<boolean> {
    // Each is looked at once, also where marks do not stay.
    const seen = new Set<number>()
    for (;;) {
      const pending = (await client.pending()).filter(({ uid }) => !seen.has(uid))
      if (pending.length === 0 || this.halt.aborted) return true
      const batch = batchOf(pending)
      // What follows in a chat must not overtake: no next batch over one that was refused.
      if ((await this.dealWith(client, batch)).length > 0) return false
      for (const { uid } of batch) seen.add(uid)
    }
  }

  /** @returns the numbers of what was not accepted. */
  private async dealWith(client: ImapClient, batch: readonly Pending[]): Promise<number[]> {
    const done = batch.filter(({ uid }) => this.unmarked.has(uid)).map(({ uid }) => uid)
    const read: Read[] = []
    for (const one of batch) {
      if (this.unmarked.has(one.uid)) continue
      const found = await this.read(client, one)
      if (found !== null) read.push(found)
    }
    const deliveries = read.flatMap(({ uid, event }) =>
      event.kind === 'ignored'
        ? []
        : [{ uid, key: this.keyOf(event.messages[0]), run: () => this.hand(event) }],
    )
    const outcomes = await deliverInOrder(deliveries, this.halt)
    const refused: number[] = []
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status !== 'accepted') refused.push(deliveries[index]!.uid)
      if (outcome.status === 'failed') {
        const level = isOrderlyStop(outcome.error) ? 'debug' : 'warn'
        this.log(level, { err: outcome.error }, 'a mail was not accepted; it stays unread and is tried again')
      }
    }
    for (const { uid, mail } of read) {
      if (refused.includes(uid)) continue
      done.push(uid)
      if (mail !== null) this.remember(mail.id, uid)
    }
    await this.mark(client, done)
    return refused
  }

  private async read(client: ImapClient, { uid, sizeBytes }: Pending): Promise<Read | null> {
    const { settings, sink, shelf } = this.parts
    const tooLarge = sizeBytes > settings.maxMessageBytes
    const raw = await client.source(uid, tooLarge ? TEXT_BYTES : settings.maxMessageBytes)
    if (raw === null) return null // Somebody has deleted it meanwhile.
    const mail = await readMail(raw)
    if (mail === null) return { uid, mail, event: this.ignored('it is not a mail that can be read', uid) }
    if (this.dealtWith.has(mail.id))
      return { uid, mail, event: this.ignored('it was dealt with before', uid) }
    const event = parseInbound(
      mail,
      { ...settings.mark, id: settings.id, own: settings.own },
      sink.clock.now(),
      tooLarge,
    )
    if (event.kind === 'ignored') return { uid, mail, event: this.ignored(event.reason, uid) }
    if (tooLarge) {
      const limit = { sizeBytes, maxMessageBytes: settings.maxMessageBytes }
      this.log('warn', limit, 'a mail is larger than maxMessageBytes: its files were left out')
    } else shelf.put(mail.id, mail.files)
    return { uid, mail, event }
  }

  private async hand(event: EmailEvent & { kind: 'messages' }): Promise<void> {
    const { threads, sink } = this.parts
    threads.remember(event.messages[0].chatId, event.thread)
    for (const message of event.messages) await sink.message(message)
  }

  /** A mark that fails is made again with the next connection. */
  private async mark(client: ImapClient, uids: readonly number[]): Promise<void> {
    for (const uid of uids) this.unmarked.add(uid)
    if (this.lostLeadership() || uids.length === 0) return
    await client.markDone(uids)
    for (const uid of uids) this.unmarked.delete(uid)
  }

  private remember(id: string, uid: number): void {
    this.dealtWith.set(id, uid)
    const [oldest] = this.dealtWith.keys()
    if (this.dealtWith.size > MAX_REMEMBERED && oldest !== undefined) this.dealtWith.delete(oldest)
  }

  private ignored(reason: string, uid: number): EmailEvent {
    this.log('debug', { reason, uid }, 'mail ignored')
    return { kind: 'ignored', reason }
  }

  private keyOf(message: Message): string {
    return chatKeyOf({ provider: this.parts.settings.id, ...message })
  }

  private log(level: 'debug' | 'warn', details: object, message: string): void {
    this.parts.sink.logger[level]({ provider: this.parts.settings.id, ...details }, message)
  }
}

function batchOf(pending: readonly Pending[]): Pending[] {
  const batch: Pending[] = []
  let bytes = 0
  for (const one of pending) {
    bytes += one.sizeBytes
    if (batch.length > 0 && (bytes > BATCH_BYTES || batch.length >= BATCH_MAILS)) break
    batch.push(one)
  }
  return batch
}
