/** Mails → messages: each sample, the threads, what is cut off, and damaged mails. */
import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { SeededRandom } from '@botmesh/core/testing'
import { parseInbound, readMail, renderOutbound, type EmailEvent, type Mail, type Self } from '@botmesh/email'
import { ownId, readChatId, threadOf } from '../src/addresses.js'
import { mailOf } from './mails.js'

const FOLDER = new URL('../src/sample-messages/', import.meta.url)
const NOW = Date.parse('2026-01-06T00:00:00Z')
const SELF: Self = {
  id: 'email:tienda@example.org',
  own: new Set(['tienda@example.org']),
  tag: 'bm01234567',
  domain: 'example.org',
}
const names = readdirSync(FOLDER).map((file) => file.replace(/\.eml$/, ''))
const sample = (name: string): Buffer => readFileSync(new URL(`${name}.eml`, FOLDER))

async function read(raw: string | Buffer): Promise<Mail> {
  const mail = await readMail(Buffer.from(raw))
  if (mail === null) throw new Error('It is not a mail.')
  return mail
}

async function parsed(raw: string | Buffer): Promise<EmailEvent & { kind: 'messages' }> {
  const event = parseInbound(await read(raw), SELF, NOW)
  if (event.kind === 'ignored') throw new Error(event.reason)
  return event
}

/** `[type, body, chat's address, further fields]` of each message that a sample becomes. */
const EXPECTED: Record<string, [body: string, address: string, more?: object][]> = {
  text: [
    [
      'Buenos días:\n\n¿Tienen la camiseta en talla M? La quiero para el sábado y no sé si llega a tiempo.',
      'ana@example.com',
      { id: 'pedido-1@example.com', fromName: 'Ana Ríos', lang: 'es-ES', timestamp: 1767603600000 },
    ],
  ],
  'subject-only': [['pedido', 'bruno@example.com']],
  'reply-gmail': [['La M, por favor.', 'ana@example.com', { quotedId: 'r1@example.org' }]],
  'reply-outlook-html': [['Sí, la azul.\n\nGracias', 'carla@example.net']],
  'reply-between-lines': [['M\n\nred', 'bruno@example.com']],
  files: [
    [
      'Le mando el comprobante y una foto.',
      'ana@example.com',
      {
        type: 'media',
        media: {
          kind: 'document',
          mimeType: 'application/pdf',
          fileName: 'recibo nº 1.pdf',
          sizeBytes: 16,
          id: '1/f1@example.com',
        },
      },
    ],
    [
      '',
      'ana@example.com',
      { type: 'media', id: 'f1@example.com#2', media: expect.objectContaining({ kind: 'image' }) },
    ],
  ],
  'contact-form': [['¿Abren el domingo?', 'diego@example.com', { from: 'diego@example.com' }]],
  'no-message-id': [['Sin identificador.', 'old@example.com', { timestamp: NOW }]],
}

describe('B4: samples', () => {
  it.each(names.filter((name) => !name.startsWith('ignored-')))('%s becomes messages', async (name) => {
    const { messages } = await parsed(sample(name))
    expect(messages).toMatchObject(
      EXPECTED[name]!.map(([body, address, more]) => ({
        body,
        type: 'text',
        isGroup: false,
        from: address,
        chatId: expect.stringMatching(new RegExp(`^${address}#[0-9a-f]{16}$`)),
        ...more,
      })),
    )
    for (const { raw: _raw, ...message } of messages) {
      expect(JSON.parse(JSON.stringify(message))).toEqual(message)
    }
  })

  it.each([
    ['ignored-bounce', 'it reports a delivery'],
    ['ignored-out-of-office', 'it is an automatic mail'],
    ['ignored-list', 'it is from a mailing list'],
    ['ignored-no-reply', 'nobody reads what is sent to its sender'],
    ['ignored-own', 'it is the bot’s own mail'],
  ])('%s is not answered: %s', async (name, reason) => {
    expect(parseInbound(await read(sample(name)), SELF, NOW)).toEqual({ kind: 'ignored', reason })
  })

  it('all are tried', () => {
    expect(names.filter((name) => !name.startsWith('ignored-')).toSorted()).toEqual(
      Object.keys(EXPECTED).toSorted(),
    )
  })

  it.each(names.filter((name) => !name.startsWith('ignored-')))(
    '%s: its answer reads as one',
    async (name) => {
      const { messages, thread } = await parsed(sample(name))
      const [{ chatId, body }] = messages
      const chat = readChatId(chatId)!
      const messageId = ownId(SELF, chat.thread, 'abc')
      const raw = await renderOutbound({
        provider: 'email:other',
        from: { address: 'x@example.org', name: null },
        to: chat.address,
        messageId,
        thread,
        subject: 'Tienda',
        isAnswer: true,
        text: body,
        file: null,
        date: new Date(NOW),
      })
      const mail = await read(raw)
      expect(mail).toMatchObject({
        id: messageId,
        inReplyTo: [messages[0].id],
        to: [chat.address],
        subject: `Re: ${(await read(sample(name))).subject.replace(/^re: /i, '')}`,
      })
      expect(mail.references.at(-1)).toBe(messages[0].id)
      expect(mail.text.trim()).toBe(body)
      expect(parseInbound(mail, SELF, NOW)).toMatchObject({ kind: 'ignored' })
      expect(parseInbound(mail, { ...SELF, tag: 'bmffffffff' }, NOW)).toMatchObject({
        reason: 'it is an automatic mail',
      })
    },
  )
})

describe('B4: threads', () => {
  const chatOf = async (raw: string) => (await parsed(raw)).messages[0].chatId

  it('all mails of a thread are one chat, whichever headers the writer’s program keeps', async () => {
    const first = await chatOf(mailOf({ id: 'a@example.com' }))
    expect(first).toBe(`ana@example.com#${threadOf('a@example.com')}`)
    const answer = ownId(SELF, threadOf('a@example.com'), 'u1')
    expect(await chatOf(mailOf({ inReplyTo: answer, references: ['a@example.com', answer] }))).toBe(first)
    expect(await chatOf(mailOf({ inReplyTo: answer }))).toBe(first)
    expect(await chatOf(mailOf({ references: ['trimmed@example.com', answer] }))).toBe(first)
    expect(await chatOf(mailOf({ references: ['a@example.com', 'other@example.com'] }))).toBe(first)
    expect(await chatOf(mailOf({ from: 'bob@example.com', inReplyTo: answer }))).toBe(
      `bob@example.com#${threadOf('a@example.com')}`,
    )
  })

  it('what answers a mail that the bot began comes in the chat that it was sent to', async () => {
    expect(await chatOf(mailOf({ inReplyTo: ownId(SELF, null, 'u2') }))).toBe('ana@example.com')
  })

  it('a Message-ID of another bot, or one that only looks like its own, does not choose the chat', async () => {
    const root = `x#${threadOf('r@example.com')}`.slice(2)
    for (const id of ['zz.u.bm01234567@example.org', ownId({ ...SELF, tag: 'bmother' }, null, 'u')]) {
      expect(await chatOf(mailOf({ references: ['r@example.com', id] }))).toBe(`ana@example.com#${root}`)
    }
  })
})

describe('scenario 25: damaged mails', () => {
  it('none is a crash, and what comes out is bounded JSON', async () => {
    const random = new SeededRandom(20260105)
    const raws = names.map(sample)
    let messages = 0
    for (let round = 0; round < 400; round += 1) {
      const raw = Buffer.from(raws[random.int(raws.length)]!)
      for (let hits = 1 + random.int(12); hits > 0; hits -= 1) raw[random.int(raw.length)] = random.int(256)
      const cut = random.next() < 0.3 ? raw.subarray(0, random.int(raw.length)) : raw
      const mail = await readMail(cut)
      if (mail === null) continue
      const event = parseInbound(mail, SELF, NOW)
      if (event.kind === 'ignored') continue
      messages += 1
      expect(JSON.stringify(event).length).toBeLessThan(100_000)
      expect(readChatId(event.messages[0].chatId)).not.toBeNull()
      expect(event.messages[0].id).not.toBe('')
    }
    expect(messages).toBeGreaterThan(50)
  }, 60_000)

  it('a mail made to be too much work is refused in little time', async () => {
    const began = performance.now()
    const nested = `From: a@example.com\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n${'--x\r\nContent-Type: text/plain\r\n\r\na\r\n'.repeat(5000)}`
    expect(await readMail(Buffer.from(nested))).toBeNull()
    const head = `From: a@example.com\r\nReferences: ${'<a@b> '.repeat(60_000)}\r\n\r\nx`
    expect(await readMail(Buffer.from(head))).toBeNull()
    for (const tag of ['<div>', '<table><tr><td>', '<p>a', '<', '<blockquote>', '&amp', '<br>']) {
      const html = `From: a@example.com\r\nContent-Type: text/html\r\n\r\n${tag.repeat(100_000)}x`
      expect((await read(html)).text.length).toBeLessThan(2_000_000)
    }
    const blank = `From: a@example.com\r\nContent-Type: text/plain\r\n\r\n${'\n'.repeat(1_000_000)}x`
    expect((await parsed(blank)).messages[0].body).toBe('')
    const many = mailOf({ references: Array.from({ length: 5000 }, (_, index) => `r${index}@example.com`) })
    expect((await parsed(many)).thread.references.length).toBeLessThanOrEqual(30)
    const lines = mailOf({ body: `${'On '.repeat(40_000)}\n`.repeat(20) + '>'.repeat(100_000) })
    expect((await parsed(lines)).messages[0].body.length).toBeLessThanOrEqual(100_000)
    expect(performance.now() - began).toBeLessThan(10_000)
  }, 30_000)
})
