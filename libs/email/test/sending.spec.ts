/** What goes out: threads, files, refusals, and that two machines do not write to each other for ever. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { SendError, type OutgoingContent, type SendOptions } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { EmailProvider, readMail, type EmailOptions, type Mail } from '@botmesh/email'
import { threadOf } from '../src/addresses.js'
import { MailSystem } from '../../../test/doubles/mail-system.js'
import { freePort } from '../../../test/support/index.js'
import { ANA, freshAddress, mailOf, mailboxBot } from './mails.js'

let system: MailSystem
let bots: EmailProvider[]

beforeAll(async () => {
  system = await MailSystem.start()
})
beforeEach(() => {
  bots = []
})
afterEach(() => Promise.all(bots.map((one) => one.stop())))

/** One that is given its mail: needs no mailbox, and no start to send. */
function bot(options: Partial<EmailOptions> = {}): EmailProvider {
  const one = new EmailProvider({
    address: freshAddress(),
    smtp: system.smtp,
    sendTimeoutMs: '5s',
    ...options,
  })
  bots.push(one)
  return one
}

async function started(one: EmailProvider): Promise<RecordingSink> {
  const sink = new RecordingSink()
  await one.start(sink, new AbortController().signal)
  await sink.until(() => one.state.status === 'open')
  return sink
}

async function sentBy(
  one: EmailProvider,
  content: OutgoingContent,
  chatId = ANA,
  options: SendOptions = {},
): Promise<{ id: string; mail: Mail; raw: string }> {
  const { id } = await one.send({ chatId }, content, options)
  const { raw } = system.sent.at(-1)!
  return { id, mail: (await readMail(Buffer.from(raw)))!, raw }
}

async function failure(sending: Promise<unknown>): Promise<SendError> {
  const error = await sending.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(SendError)
  return error as SendError
}

const wordsOf = ({ message, stack, details, cause }: SendError): string =>
  JSON.stringify([message, stack, details, String(cause)])

describe('B4: what is sent', () => {
  it('a bare address begins a thread; its answer comes in the same chat, and is answered in it', async () => {
    const one = bot({ name: 'La Tienda, S.L.', subject: 'Su pedido' })
    const sink = await started(one)
    const { id, mail } = await sentBy(one, { text: 'Hola, Ana' })
    expect(mail).toMatchObject({ id, subject: 'Su pedido', inReplyTo: [], references: [] })
    expect(mail.from).toMatchObject({ name: 'La Tienda, S.L.' })
    expect(mail.headers.get('auto-submitted')).toBe('auto-generated')
    const answer = mailOf({
      id: 'ans@example.com',
      inReplyTo: id,
      references: [id],
      subject: 'RE: Su pedido',
      body: 'sí',
    })
    expect(await one.ingest(answer)).toEqual({ status: 'accepted' })
    expect(sink.messages).toMatchObject([{ chatId: ANA, body: 'sí', quotedId: id }])
    const second = await sentBy(one, { text: 'Gracias' })
    expect(second.mail).toMatchObject({
      subject: 'Re: Su pedido',
      inReplyTo: ['ans@example.com'],
      references: [id, 'ans@example.com'],
    })
    expect(second.mail.headers.get('auto-submitted')).toBe('auto-replied')
    expect(second.mail.headers.get('x-auto-response-suppress')).toBe('All')
  })

  it('replyTo answers another mail of the thread than the last', async () => {
    const one = bot()
    const sink = await started(one)
    await one.ingest(mailOf({ id: 'r1@example.com' }))
    await one.ingest(mailOf({ id: 'r2@example.com', references: ['r1@example.com'] }))
    const { chatId } = sink.messages[0]!
    const { mail } = await sentBy(one, { text: 'al primero', replyTo: 'r1@example.com' }, chatId)
    expect(mail.inReplyTo).toEqual(['r1@example.com'])
  })

  it('buttons and lists are numbered lines, files are attached, also those that came in and those of the web', async () => {
    const one = bot()
    const sink = await started(one)
    const buttons = [
      { id: 's', text: 'S' },
      { id: 'm', text: 'M' },
    ]
    expect((await sentBy(one, { text: '¿Talla?', buttons })).mail.text.trim()).toBe('¿Talla?\n\n1. S\n2. M')
    const list = {
      button: 'Ver',
      sections: [{ title: 'Tallas', rows: [{ id: 'l', title: 'L', description: 'grande' }] }],
    }
    expect((await sentBy(one, { text: '¿Y?', list })).mail.text.trim()).toBe('¿Y?\n\nTallas\n1. L: grande')
    const data = Buffer.from('%PDF made up')
    const media = {
      kind: 'document' as const,
      data,
      mimeType: 'application/pdf',
      fileName: 'recibo nº 1.pdf',
      caption: 'Su recibo',
    }
    const { mail, raw } = await sentBy(one, { media })
    expect(mail).toMatchObject({
      text: expect.stringMatching(/^Su recibo\n?$/),
      files: [{ fileName: 'recibo nº 1.pdf', mimeType: 'application/pdf' }],
    })
    expect(Buffer.from(mail.files[0]!.bytes)).toEqual(data)
    await one.ingest(
      raw
        .replaceAll(/^(From: .*|X-Botmesh.*|Auto-Sub.*|X-Auto-.*|Message-ID:(\r\n)? .*)\r\n/gm, '')
        .replace('To: ', 'From: '),
    )
    const back = sink.messages[0]!
    expect(back).toMatchObject({ type: 'media', body: 'Su recibo', media: { fileName: 'recibo nº 1.pdf' } })
    expect(Buffer.from((await one.download(back.media!)).data)).toEqual(data)
    expect((await sentBy(one, { media: { kind: 'document', id: back.media!.id! } })).mail.files).toHaveLength(
      1,
    )
    const web = createServer((_request, response) =>
      response.setHeader('content-type', 'image/png').end('png'),
    )
    await once(web.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/x`
    const fetched = (await sentBy(one, { media: { kind: 'image', url } })).mail.files
    expect(fetched).toMatchObject([{ fileName: 'image.png', mimeType: 'image/png' }])
    const big = await failure(
      bot({ maxAttachmentBytes: 2 }).send({ chatId: ANA }, { media: { kind: 'image', url } }),
    )
    expect(big).toMatchObject({ outcome: 'final' })
    web.closeAllConnections()
    web.close()
  })

  it('T3: the attempts of one send have one Message-ID; nothing that is written can add a header', async () => {
    const one = bot({ address: freshAddress() })
    const ids = [
      (await sentBy(one, { text: 'a' }, ANA, { idempotencyKey: 'k1' })).id,
      (await sentBy(one, { text: 'a' }, ANA, { idempotencyKey: 'k1' })).id,
      (await sentBy(one, { text: 'a' }, ANA, { idempotencyKey: 'k2' })).id,
    ]
    expect(ids[0]).toBe(ids[1])
    expect(ids[2]).not.toBe(ids[0])
    for (const chatId of ['ana@example.com\r\nBcc: x@y.org', 'ana', '', 'a@b, c@d', 'ana@example.com#zz']) {
      expect(await failure(one.send({ chatId }, { text: 'x' }))).toMatchObject({ outcome: 'final' })
    }
    await started(one)
    await one.ingest(mailOf({ id: 'inj@example.com', subject: '=?utf-8?Q?a=0D=0ABcc=3A_x=40y.org?=' }))
    const chatId = `${ANA}#${threadOf('inj@example.com')}`
    const { raw } = await sentBy(one, { text: 'x' }, chatId)
    expect(raw).not.toMatch(/^Bcc:/im)
  })

  it('content that mail cannot carry is a final SendError', async () => {
    const one = bot()
    for (const content of [
      {},
      { text: '' },
      { template: { name: 'x', language: 'es' } },
      { media: { kind: 'image' as const } },
      { media: { kind: 'image' as const, url: 'file:///etc/passwd' } },
      { media: { kind: 'image' as const, id: '1/none@example.com' } },
    ]) {
      expect(await failure(one.send({ chatId: ANA }, content))).toMatchObject({ outcome: 'final' })
    }
  })
})

describe('scenario 16: sends that fail', () => {
  it.each([
    [
      '550 at the recipient',
      { kind: 'recipient', code: 550, text: 'No such user' },
      'final',
      { platformCode: '550' },
    ],
    [
      '450 at the recipient',
      { kind: 'recipient', code: 450, text: 'Greylisted' },
      'retryable',
      { scope: 'chat' },
    ],
    ['421', { kind: 'recipient', code: 421, text: 'Too busy' }, 'retryable', { scope: 'account' }],
    ['554 after the mail', { kind: 'data', code: 554, text: 'Spam' }, 'final', {}],
    ['451 after the mail', { kind: 'data', code: 451, text: 'Try later' }, 'retryable', {}],
    ['gone at the recipient', { kind: 'gone' }, 'retryable', {}],
    ['gone after the mail', { kind: 'lost-answer' }, 'uncertain', {}],
  ] as const)('%s', async (_name, fault, outcome, details) => {
    const one = bot()
    system.failNext(fault)
    const error = await failure(one.send({ chatId: ANA }, { text: 'hola' }))
    expect(error).toMatchObject({ outcome, details: { provider: one.id, ...details } })
    expect(wordsOf(error)).not.toContain(system.smtp.password)
    await one.send({ chatId: ANA }, { text: 'la siguiente' })
  })

  it('gone in the middle of a long mail: it was not taken, so it may be sent again', async () => {
    const one = bot()
    system.failNext({ kind: 'cut' })
    const media = { kind: 'document' as const, data: Buffer.alloc(700_000, 1) }
    const error = await failure(one.send({ chatId: ANA }, { media }))
    expect(['retryable', 'uncertain']).toContain(error.outcome)
  })

  it('a refused connection is retryable', async () => {
    const smtp = { ...system.smtp, port: await freePort() }
    expect(await failure(bot({ smtp }).send({ chatId: ANA }, { text: 'x' }))).toMatchObject({
      outcome: 'retryable',
    })
  })

  it('a wrong password is final, says what to do, and is not shown', async () => {
    const smtp = { ...system.smtp, password: 'wrong-password-1' }
    const error = await failure(bot({ smtp }).send({ chatId: ANA }, { text: 'x' }))
    expect(error).toMatchObject({ outcome: 'final' })
    expect(error.message).toMatch(/Check smtp\.user \("bot"\) and smtp\.password/)
    const words = wordsOf(error)
    for (const secret of ['wrong-password-1', Buffer.from('wrong-password-1').toString('base64')]) {
      expect(words).not.toContain(secret)
    }
  })

  it('a certificate of its own making is final, and says what to do', async () => {
    const tls = await MailSystem.start({ dovecot: system.dovecot, tls: true })
    const error = await failure(
      bot({ smtp: { ...tls.smtp, security: 'tls' } }).send({ chatId: ANA }, { text: 'x' }),
    )
    expect(error.message).toMatch(/certificate of 127\.0\.0\.1:\d+ is not trusted.*smtp\.ca/)
    expect(error).toMatchObject({ outcome: 'final' })
    const starttls = await failure(
      bot({ smtp: { ...system.smtp, security: 'starttls' } }).send({ chatId: ANA }, { text: 'x' }),
    )
    expect(starttls.outcome).not.toBe('uncertain')
    expect(system.sent.map(({ raw }) => raw.split('\r\n\r\n')[1])).not.toContain('x')
  })

  it('a file that is too large: for us, or for the server', async () => {
    const media = { kind: 'document' as const, data: Buffer.alloc(900_000) }
    const ours = await failure(bot({ maxAttachmentBytes: 1000 }).send({ chatId: ANA }, { media }))
    expect(ours.message).toMatch(/900000 bytes.*maxAttachmentBytes is 1000/)
    const theirs = await failure(bot().send({ chatId: ANA }, { media }))
    expect(theirs).toMatchObject({ outcome: 'final' })
    expect(theirs.message).toMatch(/too large|larger|exceeds/i)
  })
})

describe('issue 5, manners: loops', () => {
  it('two bots that answer everything do not answer each other', async () => {
    const both = await MailSystem.start({ dovecot: system.dovecot })
    both.delivers = true
    const echo = async () => {
      const address = freshAddress()
      const one = mailboxBot(both, { address })
      bots.push(one)
      const sink = await started(one)
      sink.accept = async ({ chatId, body }) => void (await one.send({ chatId }, { text: `eco ${body}` }))
      return { address, one, sink }
    }
    const [a, b] = [await echo(), await echo()]
    await both.deliver(a.address, mailOf({ from: b.address, body: 'hola' }))
    await both.until(({ sent }) => sent.length > 0)
    // Something that both do answer shows that the echo had its time.
    await both.deliver(b.address, mailOf({ body: 'soy Ana' }))
    await both.until(({ sent }) => sent.some(({ raw }) => raw.includes('eco soy Ana')))
    await b.sink.until(({ messages }) => messages.length > 0)
    expect(b.sink.bodies).toEqual(['soy Ana'])
    expect(both.sent).toHaveLength(2)
  })

  it('a machine that shows no sign of being one is answered maxRepliesPerThread times', async () => {
    const one = bot({ maxRepliesPerThread: 3 })
    for (let n = 0; n < 3; n += 1) await one.send({ chatId: ANA }, { text: `${n}` })
    const error = await failure(one.send({ chatId: ANA }, { text: 'más' }))
    expect(error).toMatchObject({ outcome: 'final' })
    expect(error.message).toMatch(/maxRepliesPerThread/)
    await one.send({ chatId: 'bruno@example.com' }, { text: 'otro hilo' })
  })
})
