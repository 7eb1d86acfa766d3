/**
 * A mail system for tests: a real Dovecot for mailboxes, and a real SMTP server (the `smtp-server` package) that keeps
 * what it is given, delivers it on to the mailboxes on demand, and goes wrong on command.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ImapFlow } from 'imapflow'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { MAIL_PASSWORD, onTestEnd, startDovecot, type ServerInstance } from '../support/index.js'

/** What the server does with the next mail. */
export type MailFault =
  /** Refuses the recipient. */
  | { kind: 'recipient'; code: number; text: string }
  /** Refuses the mail after it was given whole. */
  | { kind: 'data'; code: number; text: string }
  /** Takes it, and is gone before it says so. */
  | { kind: 'lost-answer' }
  /** Is gone in the middle of the mail. */
  | { kind: 'cut' }
  /** Is gone when it hears the recipient. */
  | { kind: 'gone' }

export interface SentMail {
  from: string
  to: string
  raw: string
}

const USER_PASSWORD = 'smtp-password'

export class MailSystem {
  readonly sent: SentMail[] = []
  /** True: what is sent to an address of example.com, example.org or example.net is in its mailbox at once. */
  delivers = false
  private fault: MailFault | undefined
  private readonly watchers = new Set<() => void>()

  private constructor(
    readonly dovecot: ServerInstance,
    private readonly server: SMTPServer,
  ) {}

  /** Ends by itself when the spec file ends. */
  static async start(options: { dovecot?: ServerInstance; tls?: boolean } = {}): Promise<MailSystem> {
    const dovecot = options.dovecot ?? (await startDovecot())
    const system: MailSystem = new MailSystem(
      dovecot,
      new SMTPServer({
        secure: options.tls === true,
        ...(options.tls === true ? certificateIn(dovecot.dir) : { disabledCommands: ['STARTTLS'] }),
        authOptional: false,
        allowInsecureAuth: true,
        size: 1024 * 1024,
        onAuth: ({ password }, _session, done) =>
          password === USER_PASSWORD ? done(null, { user: 'bot' }) : done(refusal(535, 'Wrong password')),
        onRcptTo: (_address, session, done) => system.rcptTo(session, done),
        onData: (stream, session, done) => void system.data(stream, session, done),
      }),
    )
    system.server.on('error', () => {}) // Clients that go away are what some tests are about.
    await new Promise<void>((resolve) => system.server.listen(0, '127.0.0.1', resolve))
    onTestEnd(() => system.stop())
    return system
  }

  get smtpPort(): number {
    return (this.server.server.address() as AddressInfo).port
  }

  get smtp() {
    const security = 'none' as const
    return { host: '127.0.0.1', port: this.smtpPort, security, user: 'bot', password: USER_PASSWORD }
  }

  get imap() {
    const security = 'none' as const
    return { host: '127.0.0.1', port: this.dovecot.port, security, password: MAIL_PASSWORD }
  }

  failNext(fault: MailFault): void {
    this.fault = fault
  }

  async stop(): Promise<void> {
    if (this.server.server.listening) await new Promise<void>((resolve) => this.server.close(resolve))
  }

  /** Puts a mail into a mailbox, as the mail server of its domain does (LMTP). */
  async deliver(to: string, raw: string | Buffer, from = 'sender@example.net'): Promise<void> {
    const socket = connect(join(this.dovecot.dir, 'run', 'lmtp'))
    await once(socket, 'connect')
    const lmtp = new SMTPConnection({ lmtp: true, connection: socket, ignoreTLS: true, logger: false })
    const failed = once(lmtp, 'error').then(([error]) => Promise.reject(error as Error))
    failed.catch(() => {}) // Told by the race below, if it matters.
    const envelope = { from: from === '' ? false : from, to: [to] } as const
    const run = async () => {
      await step((done) => lmtp.connect(done))
      await step((done) => lmtp.send({ ...envelope, to: [to] }, Buffer.from(raw), done))
    }
    await Promise.race([failed, run()])
    lmtp.quit()
  }

  /** Works in a mailbox, as a person with a program of their own does. */
  async inMailbox<T>(address: string, work: (mailbox: ImapFlow) => Promise<T>): Promise<T> {
    const { host, port } = this.imap
    const auth = { user: address, pass: MAIL_PASSWORD }
    const flow = new ImapFlow({ host, port, secure: false, doSTARTTLS: false, auth, logger: false })
    await flow.connect()
    try {
      await flow.mailboxOpen('INBOX')
      return await work(flow)
    } finally {
      await flow.logout()
    }
  }

  /** Flags of the mails in a mailbox, the oldest first. */
  flags(address: string): Promise<string[][]> {
    return this.inMailbox(address, async (flow) => {
      const all = await flow.fetchAll('1:*', { uid: true, flags: true })
      return all.map(({ flags }) => [...(flags ?? [])].filter((flag) => flag !== '\\Recent').toSorted())
    })
  }

  /** Resolves as soon as `condition` holds; asked after each mail that is sent. */
  async until(condition: (system: this) => boolean): Promise<void> {
    while (!condition(this)) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.watchers.delete(wake)
          resolve()
        }
        this.watchers.add(wake)
      })
    }
  }

  private rcptTo(session: SMTPServerSession, done: (error?: Error | null) => void): void {
    const { fault } = this
    if (fault?.kind !== 'recipient' && fault?.kind !== 'gone') return done()
    this.fault = undefined
    if (fault.kind === 'gone') return this.hangUp(session)
    done(refusal(fault.code, fault.text))
  }

  private async data(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    done: (error?: Error | null, message?: string) => void,
  ): Promise<void> {
    // Read before anything is answered: the session is used again for the next mail.
    const { mailFrom, rcptTo } = session.envelope
    const pieces: Buffer[] = []
    const fault = this.fault
    this.fault = undefined
    try {
      for await (const piece of stream) {
        if (fault?.kind === 'cut') return this.hangUp(session)
        pieces.push(piece as Buffer)
      }
    } catch {
      return this.hangUp(session)
    }
    if (stream.sizeExceeded) return done(refusal(552, 'Message size exceeds the limit'))
    if (fault?.kind === 'data') return done(refusal(fault.code, fault.text))
    const raw = Buffer.concat(pieces).toString()
    for (const { address } of rcptTo) {
      this.sent.push({ from: mailFrom === false ? '' : mailFrom.address, to: address, raw })
      if (this.delivers) await this.deliver(address, raw, mailFrom === false ? '' : mailFrom.address)
    }
    for (const wake of this.watchers) wake()
    if (fault?.kind === 'lost-answer') return this.hangUp(session)
    done(null, 'taken')
  }

  private hangUp(session: SMTPServerSession): void {
    for (const connection of this.server.connections) {
      if (connection.id === session.id) connection._socket.destroy()
    }
  }
}

/** The one that Dovecot made for itself. */
function certificateIn(dir: string): { cert: Buffer; key: Buffer } {
  return { cert: readFileSync(join(dir, 'cert.pem')), key: readFileSync(join(dir, 'key.pem')) }
}

function refusal(code: number, text: string): Error {
  return Object.assign(new Error(text), { responseCode: code })
}

function step(run: (done: (error?: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())))
}
