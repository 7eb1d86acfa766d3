/** A session that is given mail, by `ingest()` or by webhook: every replica has one (P2). */
import { chatKeyOf, deliverInOrder, isOrderlyStop } from '@botmesh/core'
import { parseInbound, type ThreadState } from './parse-inbound.js'
import { readMail, type MailFile } from './read-mail.js'
import { Session } from './session.js'

export type Ingested =
  | { status: 'accepted' | 'not-a-mail' | 'too-large' | 'stopped' }
  | { status: 'ignored'; reason: string }
  | { status: 'failed'; error: unknown }

export class IngestSession extends Session {
  /** Hands one mail to the runtime. Never rejects. */
  async accept(raw: Uint8Array): Promise<Ingested> {
    const { settings, sink, shelf, threads } = this.parts
    if (this.over) return { status: 'stopped' }
    if (raw.byteLength > settings.maxMessageBytes) return { status: 'too-large' }
    const mail = await readMail(raw)
    if (mail === null) return { status: 'not-a-mail' }
    const event = parseInbound(
      mail,
      { ...settings.mark, id: settings.id, own: settings.own },
      sink.clock.now(),
    )
    if (event.kind === 'ignored') {
      this.log('debug', { reason: event.reason }, 'mail ignored')
      return { status: 'ignored', reason: event.reason }
    }
    const { chatId } = event.messages[0]
    threads.remember(chatId, event.thread)
    await this.noteThread(chatId, event.thread)
    shelf.put(mail.id, mail.files)
    const key = chatKeyOf({ provider: settings.id, ...event.messages[0] })
    const outcomes = await deliverInOrder(
      event.messages.map((message) => ({ key, run: () => sink.message(message) })),
      this.halt,
    )
    const failed = outcomes.find((one) => one.status === 'failed')
    if (failed?.status === 'failed') {
      const level = isOrderlyStop(failed.error) ? 'debug' : 'warn'
      this.log(level, { err: failed.error }, 'a mail was not accepted')
      return { status: 'failed', error: failed.error }
    }
    return { status: outcomes.every((one) => one.status === 'accepted') ? 'accepted' : 'stopped' }
  }

  async findThread(chatId: string): Promise<ThreadState | null> {
    const { sink, threads } = this.parts
    if (sink.log === undefined) return null
    try {
      return await threads.lookUp(sink.log, chatId)
    } catch (error) {
      this.log('warn', { err: error }, 'the thread of an answer could not be looked up')
      return null
    }
  }

  noteAnswered(): void {
    // There is no mailbox: what was dealt with is known by its id alone.
  }

  async findFile(): Promise<MailFile | null> {
    return null
  }

  protected async receive(): Promise<void> {
    this.report({ status: 'open' })
    if (this.halt.aborted) return
    await new Promise<void>((resolve) => this.halt.addEventListener('abort', () => resolve(), { once: true }))
  }

  /** So that whichever replica answers continues the thread. A mail is not refused for it. */
  private async noteThread(chatId: string, thread: ThreadState): Promise<void> {
    const { sink, threads } = this.parts
    if (sink.log === undefined) return
    try {
      await threads.note(sink.log, chatId, thread)
    } catch (error) {
      this.log('warn', { err: error }, 'the thread of a mail could not be noted for the other replicas')
    }
  }
}
