/**
 * Sending over SMTP. A connection a mail: nothing is kept open between two, so nothing has to be closed by a
 * replica that stops, and a mail never fails because an old connection had died.
 */
import { Readable } from 'node:stream'
import SMTPConnection, { type SMTPConnectionAuth } from 'nodemailer/lib/smtp-connection'
import XOAuth2 from 'nodemailer/lib/xoauth2'
import type { EmailSettings } from './options.js'
import { toSendError } from './mail-errors.js'

const PIECE_BYTES = 64 * 1024

export class SmtpClient {
  constructor(private readonly settings: EmailSettings) {}

  /** @throws SendError that says retryable, final or uncertain (scenario 16) */
  async send(to: string, raw: Buffer): Promise<void> {
    let sent: 'nothing' | 'body' = 'nothing'
    try {
      await this.connected(async (connection) => {
        // Asked for its pieces only once the server wants them. What is cut off before its end is thrown away by the
        // server; after it only its answer tells.
        const body = Readable.from(
          piecesOf(raw, () => (sent = 'body')),
          { objectMode: false },
        )
        const envelope = { from: this.settings.address, to: [to], size: raw.byteLength }
        await called((done) => connection.send(envelope, body, done))
      })
    } catch (error) {
      throw toSendError(this.settings, error, sent)
    }
  }

  /** Connects and logs in, without sending; hangs up as soon as `signal` aborts. @throws SendError */
  async check(signal: AbortSignal): Promise<void> {
    try {
      await this.connected(async () => {}, signal)
    } catch (error) {
      throw toSendError(this.settings, error, 'nothing')
    }
  }

  private async connected(
    use: (connection: SMTPConnection) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<void> {
    const auth = await this.auth()
    signal?.throwIfAborted()
    const connection = this.connection()
    let hangUp = () => {}
    // Not every call is told when the connection fails: each one races with it.
    const broken = new Promise<never>((_resolve, reject) => {
      connection.on('error', reject)
      hangUp = () => reject(new Error('hung up'))
    })
    broken.catch(() => {}) // Concerns nobody at a time when no call waits.
    signal?.addEventListener('abort', hangUp, { once: true })
    try {
      await Promise.race([broken, called((done) => connection.connect(done))])
      if (auth !== null) await Promise.race([broken, called((done) => connection.login(auth, done))])
      await Promise.race([broken, use(connection)])
      connection.quit()
    } catch (error) {
      connection.close()
      throw error
    } finally {
      signal?.removeEventListener('abort', hangUp)
    }
  }

  private connection(): SMTPConnection {
    const { smtp, sendTimeoutMs } = this.settings
    return new SMTPConnection({
      host: smtp.host,
      port: smtp.port,
      secure: smtp.security === 'tls',
      ignoreTLS: smtp.security === 'none',
      requireTLS: smtp.security === 'starttls',
      ...(smtp.ca.length === 0 ? {} : { tls: { ca: smtp.ca } }),
      connectionTimeout: sendTimeoutMs,
      greetingTimeout: sendTimeoutMs,
      socketTimeout: sendTimeoutMs,
      dnsTimeout: sendTimeoutMs,
      logger: false,
    })
  }

  private async auth(): Promise<SMTPConnectionAuth | null> {
    const { user, password, accessToken } = this.settings.smtp
    if (accessToken !== null) {
      return { user, oauth2: new XOAuth2({ user, accessToken: await accessToken() }) }
    }
    return password === null ? null : { user, pass: password }
  }
}

function called(call: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => call((error) => (error ? reject(error) : resolve())))
}

function* piecesOf(raw: Buffer, last: () => void): Generator<Buffer> {
  for (let at = 0; at < raw.byteLength; at += PIECE_BYTES) {
    const end = at + PIECE_BYTES
    // Noted before it is handed over: from then on it may be on its way.
    if (end >= raw.byteLength) last()
    yield raw.subarray(at, end)
  }
}
