/** One start of the provider: from `begin` until it was stopped, lost the leadership, or was refused for good. */
import { SendError, ProviderError, TransportSession, type TransportSessionParts } from '@botmesh/core'
import type { FileShelf } from './file-shelf.js'
import type { EmailSettings } from './options.js'
import type { ThreadState } from './parse-inbound.js'
import type { MailFile } from './read-mail.js'
import type { SmtpClient } from './smtp.client.js'
import type { Threads } from './threads.js'

/** How long `start` waits for the first answer, so that a wrong password is an error of `start`. */
const FIRST_ANSWER_MS = 3_000

export interface SessionParts extends TransportSessionParts {
  settings: EmailSettings
  smtp: SmtpClient
  threads: Threads
  shelf: FileShelf
}

export abstract class Session extends TransportSession<SessionParts> {
  constructor(parts: SessionParts) {
    super(parts, FIRST_ANSWER_MS)
  }

  /** The thread of a chat as the mailbox, or whatever else outlives a replica, has it. Never rejects. */
  abstract findThread(chatId: string): Promise<ThreadState | null>

  /** A mail was answered: notes it where the next leader sees it. Never rejects. */
  abstract noteAnswered(messageId: string): void

  /** A file of a mail that came in; null if it is there no more. */
  abstract findFile(mailId: string, number: number): Promise<MailFile | null>

  /** Receives until halted or refused. */
  protected abstract receive(): Promise<void>

  protected async live(): Promise<void> {
    await Promise.all([this.receive(), this.checkSending()])
  }

  /** The mailbox will not open: reported by `start` if it still waits, else through the sink. */
  protected refuseMailbox(reason: string): void {
    const details = { provider: this.parts.settings.id, reason, final: true }
    this.refuse(new ProviderError(`The mailbox cannot be opened: ${reason}.`, details))
    // The server for sending may take its time: a start does not wait for it.
    this.answered()
  }

  protected log(level: 'debug' | 'info' | 'warn', details: object, message: string): void {
    this.sink.logger[level]({ provider: this.parts.settings.id, ...details }, message)
  }

  /** A wrong password for sending is told at the start, not by the first answer that fails. Never rejects. */
  private async checkSending(): Promise<void> {
    const { smtp, sink } = this.parts
    try {
      await smtp.check(this.halt)
    } catch (error) {
      if (this.halt.aborted) return
      if (error instanceof SendError && error.outcome === 'final') sink.error(error)
      else this.log('warn', { err: error }, 'the server for sending does not answer yet')
    }
  }
}
