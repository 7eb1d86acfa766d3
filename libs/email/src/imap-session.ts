/**
 * A session that reads a mailbox: exclusive, one replica at a time (P1).
 *
 * States:
 * - connecting: logs in and opens the mailbox. → open; waiting; ended if it is refused
 * - open: deals with what is unread, then waits for more, and asks again every `checkMs`. → waiting, ended
 * - waiting (reported as `closed` with its reason): pauses, growing, then connects again. → connecting, ended
 * - ended: halted, or refused. Nothing leaves it.
 * No connection is opened once `halt` has aborted (scenario 20). After a lost leadership not even a mark is made.
 */
import { Backoff, pause, type Timer } from '@botmesh/core'
import { chatIdOf, readChatId, threadOfMail } from './addresses.js'
import { ImapClient } from './imap.client.js'
import { MailboxReader } from './mailbox-reader.js'
import { judgeMailbox } from './mail-errors.js'
import type { EmailSettings } from './options.js'
import { threadStateOf, type ThreadState } from './parse-inbound.js'
import { readMail, type MailFile } from './read-mail.js'
import { Session, type SessionParts } from './session.js'

type ImapSettings = EmailSettings & { imap: NonNullable<EmailSettings['imap']> }

/** How long a stop waits for the runtime to accept what it was just given. */
const LAST_MESSAGES_MS = 3_000

export class ImapSession extends Session {
  private readonly settings: ImapSettings
  private readonly reader: MailboxReader
  /** The connection, while the mailbox is open. */
  private open: ImapClient | undefined
  private uidValidity: string | undefined
  private readonly marks = new Set<Promise<void>>()

  constructor(parts: SessionParts) {
    super(parts)
    this.settings = parts.settings as ImapSettings
    this.reader = new MailboxReader(parts, this.halt, () => this.lostLeadership)
  }

  async findThread(chatId: string): Promise<ThreadState | null> {
    const chat = readChatId(chatId)
    if (chat === null || this.open === undefined) return null
    try {
      for (const head of await this.open.headsFrom(chat.address)) {
        const mail = await readMail(head)
        if (mail === null) continue
        const { address } = mail.replyTo ?? mail.from ?? { address: '' }
        const itsChat = chatIdOf({ address, thread: threadOfMail(this.settings.mark, mail) })
        if (itsChat === chatId) return threadStateOf(mail)
      }
    } catch (error) {
      this.log('warn', { reason: this.reasonOf(error) }, 'the thread of an answer could not be looked up')
    }
    return null
  }

  noteAnswered(messageId: string): void {
    const { open } = this
    if (open === undefined || this.halt.aborted) return
    const mark = open.markAnswered(messageId, this.reader.numberOf(messageId)).then(
      () => {},
      (error: unknown) =>
        this.log('debug', { reason: this.reasonOf(error) }, 'a mail could not be marked as answered'),
    )
    this.marks.add(mark)
    void mark.then(() => this.marks.delete(mark))
  }

  async findFile(mailId: string, number: number): Promise<MailFile | null> {
    const raw = await this.open?.byId(mailId)
    const mail = raw === undefined || raw === null ? null : await readMail(raw)
    return mail?.files[number - 1] ?? null
  }

  protected async receive(): Promise<void> {
    const { clock, random } = this.sink
    const backoff = new Backoff(random, 500, 30_000)
    while (!this.halt.aborted) {
      const failure = await this.connection(() => backoff.reset())
      if (this.halt.aborted || failure === null) return
      if (failure.kind === 'refused') return this.refuseMailbox(failure.reason)
      this.log('warn', { reason: failure.reason }, 'the mailbox is not connected; trying again')
      this.report({ status: 'closed', reason: failure.reason })
      await pause(clock, backoff.next(), this.halt)
      this.report({ status: 'connecting' })
    }
  }

  /** One connection, from its opening to its end. @returns why it ended; null when halted. Never rejects. */
  private async connection(opened: () => void) {
    let client: ImapClient | undefined
    const cut = () => {
      if (this.lostLeadership || this.open === undefined) void client?.close(false)
    }
    this.halt.addEventListener('abort', cut, { once: true })
    try {
      const auth = await this.auth()
      if (this.halt.aborted) return null
      client = new ImapClient(this.settings, this.sink.clock, auth)
      this.adopt(await client.open())
      this.open = client
      opened()
      this.report({ status: 'open' })
      await this.serve(client)
      return null
    } catch (error) {
      return judgeMailbox(error, this.settings.imap, this.settings.secrets)
    } finally {
      this.open = undefined
      this.halt.removeEventListener('abort', cut)
      await client?.close(this.halt.aborted && !this.lostLeadership)
    }
  }

  /** Until halted. @throws when the connection fails */
  private async serve(client: ImapClient): Promise<void> {
    const refusals = new Backoff(this.sink.random, 250, 10_000)
    while (!this.halt.aborted) {
      const all = await this.unlessHalted(this.reader.deal(client))
      if (client.isClosed && !this.halt.aborted) throw new Error('the connection was closed')
      if (all) {
        refusals.reset()
        await client.wait(this.halt)
      } else await pause(this.sink.clock, refusals.next(), this.halt)
    }
    if (!this.lostLeadership) await Promise.all(this.marks)
  }

  /** What is being accepted has some time for it after the halt. @returns false if that was not enough */
  private async unlessHalted(dealing: Promise<boolean>): Promise<boolean> {
    const { halt } = this
    let timer: Timer | undefined
    let halted = () => {}
    const impatient = new Promise<boolean>((resolve) => {
      halted = () => (timer = this.sink.clock.setTimeout(() => resolve(false), LAST_MESSAGES_MS))
      if (halt.aborted) halted()
      else halt.addEventListener('abort', halted, { once: true })
    })
    // If it fails after that, nobody waits for it any more.
    dealing.catch(() => {})
    try {
      return await Promise.race([dealing, impatient])
    } finally {
      halt.removeEventListener('abort', halted)
      timer?.cancel()
    }
  }

  /** The mailbox was made anew: what its numbers meant they mean no more. Its marks are gone too, hence the ids. */
  private adopt(uidValidity: string): void {
    if (this.uidValidity !== undefined && this.uidValidity !== uidValidity) {
      this.log('warn', { mailbox: this.settings.imap.mailbox }, 'the mailbox was made anew (UIDVALIDITY)')
      this.reader.forgetNumbers()
    }
    this.uidValidity = uidValidity
  }

  private async auth(): Promise<{ user: string; pass?: string; accessToken?: string }> {
    const { user, password, accessToken } = this.settings.imap
    return {
      user,
      ...(accessToken === null ? { pass: password ?? '' } : { accessToken: await accessToken() }),
    }
  }

  private reasonOf(error: unknown): string {
    return judgeMailbox(error, this.settings.imap, this.settings.secrets).reason
  }
}
