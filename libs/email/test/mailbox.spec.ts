/** The mailbox: marks, hand-over, silence, refusals; against Dovecot, through a proxy that goes wrong on command. */
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { CoordinationUnavailableError, ProviderError } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import type { EmailOptions, EmailProvider } from '@botmesh/email'
import { MailSystem } from '../../../test/doubles/mail-system.js'
import { MAIL_PASSWORD, startDovecot, startFaultProxy, waitFor } from '../../../test/support/index.js'
import { ANA, freshAddress, mailOf, mailboxBot } from './mails.js'

const DEALT_WITH = ['$BotmeshDone', '\\Seen']
let system: MailSystem
let address: string
let bots: EmailProvider[]

beforeAll(async () => {
  system = await MailSystem.start()
})
beforeEach(() => {
  address = freshAddress()
  bots = []
})
afterEach(() => Promise.all(bots.map((one) => one.stop())))

function bot(options: Partial<EmailOptions> = {}): EmailProvider {
  const one = mailboxBot(system, { address, ...options })
  bots.push(one)
  return one
}

/** Starts, and waits until the mailbox is open. */
async function started(one: EmailProvider, signal = new AbortController().signal): Promise<RecordingSink> {
  const sink = new RecordingSink()
  await one.start(sink, signal)
  await sink.until(() => one.state.status === 'open')
  return sink
}

/** Everything that a bot has said, as text. */
function saidBy(sink: RecordingSink, ...more: unknown[]): string {
  const words = (value: unknown): unknown =>
    value instanceof Error ? [value.message, value.stack, Object.entries(value), words(value.cause)] : value
  const logs = sink.logs.map(({ details, message }) => [message, Object.values(details).map(words)])
  return JSON.stringify([logs, sink.errors.map(words), sink.states, more.map(words)])
}

describe('issue 5: mail comes in and is marked', () => {
  it('new mail is noticed by IDLE at once, and marked as seen and done; what was read or is old is left alone', async () => {
    await system.deliver(address, mailOf({ body: 'leído' }))
    await system.inMailbox(address, (flow) => flow.messageFlagsAdd('1', ['\\Seen']))
    await system.inMailbox(address, (flow) =>
      flow.append('INBOX', mailOf({ body: 'viejo' }), [], new Date(Date.now() - 2 * 86_400_000)),
    )
    const sink = await started(bot({ checkMs: '30s' }))
    await system.deliver(address, mailOf({ body: 'nuevo' }))
    const delivered = performance.now()
    await sink.until(() => sink.messages.length > 0)
    expect(performance.now() - delivered).toBeLessThan(3000)
    expect(sink.bodies).toEqual(['nuevo'])
    await waitFor(async () => (await system.flags(address))[2]!.length > 0, { what: 'it is marked' })
    expect(await system.flags(address)).toEqual([['\\Seen'], [], DEALT_WITH])
  })

  it('scenario 24: answered mail is marked so, and the next leader answers neither it nor what was ignored', async () => {
    const first = bot()
    const sink = await started(first)
    await system.deliver(address, mailOf({ body: 'uno', id: `uno.${address}` }))
    await system.deliver(address, mailOf({ headers: { 'Auto-Submitted': 'auto-replied' } }))
    await sink.until(() => sink.messages.length > 0)
    const { chatId } = sink.messages[0]!
    await first.send({ chatId }, { text: 'respuesta' })
    await waitFor(async () => (await system.flags(address))[0]!.includes('\\Answered'), { what: 'the mark' })
    await first.stop()
    expect(await system.flags(address)).toEqual([[...DEALT_WITH, '\\Answered'].toSorted(), DEALT_WITH])
    await system.deliver(address, mailOf({ body: 'dos' }))
    const next = await started(bot())
    await next.until(() => next.messages.length > 0)
    expect(next.bodies).toEqual(['dos'])
  })

  it('the next leader continues a thread that it never saw', async () => {
    const first = bot()
    const sink = await started(first)
    await system.deliver(address, mailOf({ subject: 'Pedido 7', id: `a.${address}` }))
    await system.deliver(
      address,
      mailOf({ id: `b.${address}`, references: [`a.${address}`], subject: 'Re: Pedido 7' }),
    )
    await sink.until(() => sink.messages.length > 1)
    const { chatId } = sink.messages[1]!
    await first.stop()
    const next = bot()
    await started(next)
    const { id } = await next.send({ chatId }, { text: 'sigo yo' })
    const { to, from, ...sent } = system.sent.at(-1)!
    expect({ to, from }).toEqual({ to: ANA, from: address })
    const raw = sent.raw.replace(/\r\n /g, ' ')
    expect(raw).toContain(`Message-ID: <${id}>`)
    expect(raw).toContain('Subject: Re: Pedido 7\r\n')
    expect(raw).toContain(`In-Reply-To: <b.${address}>`)
    expect(raw).toContain(`References: <a.${address}> <b.${address}>`)
  })

  it('a copy that comes again without its marks is not handed over again; a new UIDVALIDITY is survived', async () => {
    const proxy = await startFaultProxy({ to: { port: system.dovecot.port } })
    const one = bot({ imap: { ...system.imap, port: proxy.port } })
    const sink = await started(one)
    const mail = mailOf({ body: 'una vez' })
    await system.deliver(address, mail)
    await sink.until(() => sink.messages.length > 0)
    await waitFor(async () => (await system.flags(address))[0]!.length === 2, { what: 'it is marked' })
    proxy.cut()
    await sink.until(() => one.state.status === 'closed')
    await remakeMailbox()
    await system.deliver(address, mail)
    await system.deliver(address, mailOf({ body: 'otra' }))
    proxy.heal()
    await sink.until(() => sink.messages.length > 1)
    expect(sink.bodies).toEqual(['una vez', 'otra'])
    expect(sink.logs.some(({ message }) => message.includes('UIDVALIDITY'))).toBe(true)
    await waitFor(async () => (await system.flags(address)).every((flags) => flags.length === 2), {
      what: 'both are marked',
    })
  })

  it('T2: a mail that was not accepted stays unread, also over a stop', async () => {
    const first = bot()
    const sink = new RecordingSink()
    let asked = 0
    sink.accept = async () => {
      asked += 1
      throw new Error('The journal cannot be reached.')
    }
    await first.start(sink, new AbortController().signal)
    await system.deliver(address, mailOf({ body: 'espera' }))
    await waitFor(() => asked > 1, { what: 'it is tried again' })
    await first.stop()
    expect(await system.flags(address)).toEqual([[]])
    const next = await started(bot())
    await next.until(() => next.messages.length > 0)
    expect(next.bodies).toEqual(['espera'])
  })

  it('a mail larger than maxMessageBytes comes with its text only; others’ files can be had from the mailbox', async () => {
    const sink = await started(bot({ maxMessageBytes: 20_000 }))
    const withFile = (bytes: number) =>
      mailOf({ body: 'x' }).replace(
        /Content-Type: text\/plain.*$/s,
        [
          'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b"\r\n',
          '--b\r\nContent-Type: text/plain\r\n\r\nCon fichero\r\n--b',
          'Content-Type: application/pdf; name="f.pdf"\r\nContent-Disposition: attachment; filename="f.pdf"',
          `Content-Transfer-Encoding: base64\r\n\r\n${Buffer.alloc(bytes, 7).toString('base64')}\r\n--b--\r\n`,
        ].join('\r\n'),
      )
    await system.deliver(address, withFile(40_000))
    await sink.until(() => sink.messages.length > 0)
    expect(sink.messages[0]).toMatchObject({ type: 'text', body: 'Con fichero' })
    expect(sink.logs).toContainEqual(
      expect.objectContaining({ level: 'warn', message: expect.stringContaining('maxMessageBytes') }),
    )
    await system.deliver(address, withFile(1000))
    await sink.until(() => sink.messages.length > 1)
    const { media } = sink.messages[1]!
    expect(media).toMatchObject({ kind: 'document', fileName: 'f.pdf', sizeBytes: 1000 })
    const later = bot()
    await started(later)
    expect(Buffer.from((await later.download(media!)).data)).toEqual(Buffer.alloc(1000, 7))
    await expect(later.download(media!, { maxBytes: 10 })).rejects.toThrow(/1000 bytes/)
    await expect(later.download({ id: '9/none@x' })).rejects.toThrow(ProviderError)
  })
})

/** Another UIDVALIDITY, and the marks are gone: what is left of a mailbox that was restored from a copy. */
async function remakeMailbox(): Promise<void> {
  const dir = join(system.dovecot.dir, 'mail', address)
  const validity = () =>
    system.inMailbox(address, async ({ mailbox }) => (mailbox === false ? null : mailbox.uidValidity))
  const before = await validity()
  const remade = async () => {
    await system.inMailbox(address, (flow) => flow.messageDelete('1:*'))
    const list = await readFile(join(dir, 'dovecot-uidlist'), 'utf8')
    await writeFile(
      join(dir, 'dovecot-uidlist'),
      list.replace(/V(\d+)/, (_all, old) => `V${Number(old) + 77}`),
    )
    for (const name of await readdir(dir)) {
      if (name.startsWith('dovecot.index')) await rm(join(dir, name), { force: true })
    }
    return (await validity()) !== before
  }
  await waitFor(remade, { what: 'the mailbox is made anew' })
}

describe('scenario 24: the mailbox goes silent', () => {
  it('IDLE that says nothing any more: the check finds the mail', async () => {
    const proxy = await startFaultProxy({ to: { port: system.dovecot.port } })
    const sink = await started(
      bot({ imap: { ...system.imap, port: proxy.port }, checkMs: 500, answerMs: 500 }),
    )
    proxy.blackhole()
    await system.deliver(address, mailOf({ body: 'en silencio' }))
    const delivered = performance.now()
    await sink.until(() => sink.states.some(({ status }) => status === 'closed'))
    expect(performance.now() - delivered).toBeLessThan(3000)
    proxy.heal()
    proxy.reset()
    await sink.until(() => sink.messages.length > 0)
    expect(sink.bodies).toEqual(['en silencio'])
    expect(proxy.connections()).toBe(1)
  })

  it('a connection that works, but over which nothing is told any more: the mailbox is asked all the same', async () => {
    const deaf = await startDeafLine(system.dovecot.port)
    const one = bot({ imap: { ...system.imap, port: deaf.port }, checkMs: 800 })
    const sink = await started(one)
    await system.deliver(address, mailOf({ body: 'sin aviso' }))
    await sink.until(() => sink.messages.length > 0)
    expect(deaf.swallowed()).toBeGreaterThan(0)
    expect(sink.states.map(({ status }) => status)).toEqual(['connecting', 'open'])
    await one.stop()
    deaf.stop()
  })

  it('a server that is frozen: reported as closed, and open again once it goes on', async () => {
    const frozen = await MailSystem.start({ dovecot: await startDovecot() })
    const one = mailboxBot(frozen, { address, answerMs: 500 })
    bots.push(one)
    const sink = await started(one)
    // Dovecot serves each client with a process of its own: all of them are stopped.
    const processes = await processesIn(frozen)
    for (const pid of processes) process.kill(pid, 'SIGSTOP')
    await sink.until(() => sink.states.some(({ status }) => status === 'closed'))
    expect(sink.states.find(({ status }) => status === 'closed')).toMatchObject({
      reason: expect.stringMatching(/no answer|closed|timeout/i),
    })
    for (const pid of processes) process.kill(pid, 'SIGCONT')
    await sink.until(() => one.state.status === 'open')
    await frozen.deliver(address, mailOf({ body: 'otra vez' }))
    await sink.until(() => sink.messages.length > 0)
    expect(sink.errors).toEqual([])
  })
})

/** Passes on everything but what an idle mailbox is told of by itself. */
async function startDeafLine(port: number) {
  let swallowed = 0
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    client.pipe(upstream)
    upstream.on('data', (data) => {
      if (/^\* \d+ (EXISTS|RECENT)\r\n(\* \d+ RECENT\r\n)?$/.test(data.toString())) swallowed += 1
      else client.write(data)
    })
    upstream.on('end', () => client.end())
    for (const socket of [client, upstream]) socket.on('error', () => client.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const place = server.address() as AddressInfo
  return { port: place.port, swallowed: () => swallowed, stop: () => void server.close() }
}

async function processesIn({ dovecot }: MailSystem): Promise<number[]> {
  const pids = [dovecot.pid]
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    if (stat.slice(stat.lastIndexOf(')')).split(' ')[2] === String(dovecot.pid)) pids.push(Number(name))
  }
  return pids
}

describe('issue 5, bad input: the mailbox refuses', () => {
  it('a wrong password: start rejects with what to do, and shows no password', async () => {
    const one = bot({ imap: { ...system.imap, password: 'not-the-password' } })
    const sink = new RecordingSink()
    const error = await one.start(sink, new AbortController().signal).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({ details: { provider: one.id, final: true }, retryable: false })
    expect(String(error)).toMatch(/refuses the login.*check imap.user and imap.password/)
    expect(one.state).toMatchObject({ status: 'closed', final: true })
    const said = saidBy(sink, error)
    expect(said).not.toContain('not-the-password')
    expect(said).not.toContain(Buffer.from('not-the-password').toString('base64'))
  })

  it('a certificate of its own making is refused with what to do, and accepted once it is given as ca', async () => {
    const imap = { ...system.imap, host: 'localhost', security: 'starttls' as const }
    const error = await bot({ imap })
      .start(new RecordingSink(), new AbortController().signal)
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ProviderError)
    expect(String(error)).toMatch(/certificate of localhost:\d+ is not trusted.*imap\.ca/)
    const ca = readFileSync(join(system.dovecot.dir, 'cert.pem'), 'utf8')
    const sink = await started(bot({ imap: { ...imap, ca } }))
    await system.deliver(address, mailOf({ body: 'cifrado' }))
    await sink.until(() => sink.messages.length > 0)
  })

  it('a mailbox that does not exist is named', async () => {
    const one = bot({ imap: { ...system.imap, mailbox: 'Pedidos' } })
    await expect(one.start(new RecordingSink(), new AbortController().signal)).rejects.toThrow(
      /no mailbox "Pedidos".*imap\.mailbox/,
    )
  })

  it('an unreachable server is tried again until it is there; no secret is in what was said', async () => {
    const proxy = await startFaultProxy({ to: { port: system.dovecot.port } })
    proxy.cut()
    const one = bot({ imap: { ...system.imap, port: proxy.port } })
    const sink = new RecordingSink()
    await one.start(sink, new AbortController().signal)
    expect(one.state.status).not.toBe('open')
    proxy.heal()
    await sink.until(() => one.state.status === 'open')
    expect(sink.logs.some(({ message }) => message.includes('trying again'))).toBe(true)
    expect(saidBy(sink)).not.toContain(MAIL_PASSWORD)
  })

  it('a wrong password for sending is told at the start, though mail comes in', async () => {
    const sink = await started(bot({ smtp: { ...system.smtp, password: 'not-for-smtp' } }))
    await sink.until(() => sink.errors.length > 0)
    expect(sink.errors[0]).toMatchObject({
      outcome: 'final',
      message: expect.stringContaining('smtp.password'),
    })
    expect(saidBy(sink)).not.toContain('not-for-smtp')
  })
})

describe('scenario 20: the leadership ends', () => {
  it('lost: the connection is cut and no mark is made any more; given up in order: marks are made first', async () => {
    for (const orderly of [false, true]) {
      const mailbox = freshAddress()
      const leadership = new AbortController()
      const one = bot({ address: mailbox })
      const sink = new RecordingSink()
      let accept = () => {}
      sink.accept = () => new Promise<void>((resolve) => (accept = resolve))
      await one.start(sink, leadership.signal)
      await sink.until(() => one.state.status === 'open')
      await system.deliver(mailbox, mailOf())
      await waitFor(() => accept.toString() !== (() => {}).toString(), { what: 'it is handed over' })
      leadership.abort(orderly ? new CoordinationUnavailableError('stopped') : new Error('lost'))
      accept()
      await sink.until(() => one.state.status === 'closed')
      await one.stop()
      expect(await system.flags(mailbox)).toEqual([orderly ? DEALT_WITH : []])
    }
  })
})
