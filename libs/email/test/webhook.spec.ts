/** Mail that is handed in: the forms in which services pass it on, who may, what is refused, and damaged calls. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import { readFileSync, readdirSync } from 'node:fs'
import { MemoryLog, systemClock, type WebhookRequest } from '@botmesh/core'
import { RecordingSink, SeededRandom } from '@botmesh/core/testing'
import { EmailProvider } from '@botmesh/email'
import { MailSystem } from '../../../test/doubles/mail-system.js'
import { mailOf } from './mails.js'

const SECRET = 'a-secret-of-the-webhook'
const OPTIONS = { address: 'tienda@example.org', webhook: { secret: SECRET }, maxMessageBytes: 100_000 }
// Nobody listens there: what is tried here sends nothing.
const SMTP = { host: '127.0.0.1', port: 1, security: 'none' as const }
let provider: EmailProvider
let sink: RecordingSink

beforeEach(async () => {
  provider = new EmailProvider({ ...OPTIONS, smtp: SMTP })
  sink = new RecordingSink()
  await provider.start(sink, new AbortController().signal)
})

function request(rawBody: string | Uint8Array, headers: Record<string, string> = {}): WebhookRequest {
  return { method: 'POST', headers, query: { secret: SECRET }, rawBody: Buffer.from(rawBody) }
}

async function status(call: WebhookRequest): Promise<number> {
  return (await provider.handle!(call)).status
}

async function formOf(form: FormData | URLSearchParams): Promise<WebhookRequest> {
  const coded = new Response(form)
  const type = coded.headers.get('content-type')!
  return request(new Uint8Array(await coded.arrayBuffer()), { 'content-type': type })
}

describe('P2: mail by webhook', () => {
  it('comes as the body, in a form, in JSON, or in a notification', async () => {
    const mail = (body: string) => mailOf({ body })
    const form = new FormData()
    form.set('recipient', 'tienda@example.org')
    form.set('body-mime', mail('tres'))
    const file = new FormData()
    file.set('email', new Blob([mail('cuatro')]), 'mail.eml')
    const base64 = Buffer.from(mail('seis')).toString('base64')
    const message = JSON.stringify({ notificationType: 'Received', content: mail('siete') })
    const json = { 'content-type': 'application/json' }
    const sns = { 'content-type': 'text/plain', 'x-amz-sns-message-type': 'Notification' }
    const calls = [
      request(mail('uno')),
      request(mail('dos'), { 'content-type': 'message/rfc822' }),
      await formOf(form),
      await formOf(file),
      await formOf(new URLSearchParams({ 'body-mime': mail('cinco') })),
      request(JSON.stringify({ raw: base64 }), json),
      request(JSON.stringify({ Type: 'Notification', Message: message }), sns),
    ]
    for (const call of calls) expect(await status(call)).toBe(200)
    expect(sink.bodies).toEqual(['uno', 'dos', 'tres', 'cuatro', 'cinco', 'seis', 'siete'])
  })

  it('scenario 25: the secret may come in four ways, and must come', async () => {
    const call = (headers: Record<string, string>, query = {}): WebhookRequest => ({
      ...request(mailOf()),
      headers,
      query,
    })
    const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
    expect(await status(call({ authorization: `Bearer ${SECRET}` }))).toBe(200)
    expect(await status(call(basic(`any:${SECRET}`)))).toBe(200)
    expect(await status(call({ 'x-webhook-secret': SECRET }))).toBe(200)
    expect(await status(call({}, { secret: SECRET }))).toBe(200)
    const wrongs: Record<string, string>[] = [
      {},
      { authorization: 'Bearer x' },
      basic(`${SECRET}:x`),
      { 'x-webhook-secret': '' },
    ]
    for (const wrong of wrongs) {
      expect(await status(call(wrong))).toBe(401)
    }
    expect(sink.messages).toHaveLength(4)
    expect(await status({ ...call({}), method: 'GET' })).toBe(405)
  })

  it('scenario 25: what is no mail is 400, what is too large 413, what is not for the bot 200', async () => {
    const json = { 'content-type': 'application/json' }
    expect(await status(request('hello'))).toBe(400)
    expect(await status(request('', { 'content-type': 'multipart/form-data; boundary=x' }))).toBe(400)
    expect(await status(request('[1]', json))).toBe(400)
    expect(await status(request(mailOf({ body: 'x'.repeat(120_000) })))).toBe(413)
    expect(await status(request(mailOf({ body: 'x'.repeat(200_000) })))).toBe(413)
    expect(await status(request(mailOf({ headers: { 'List-Id': '<x>' } })))).toBe(200)
    expect(await status(request('{"event":"delivered"}', json))).toBe(200)
    expect(sink.messages).toEqual([])
  })

  it('scenario 25: whatever comes is answered 2xx, 4xx or 503, and breaks nothing', async () => {
    const random = new SeededRandom(25)
    const folder = new URL('../src/sample-messages/', import.meta.url)
    const mails = readdirSync(folder).map((name) => readFileSync(new URL(name, folder)))
    const types = [
      'message/rfc822',
      'application/json',
      'multipart/form-data; boundary=b1',
      'application/x-www-form-urlencoded',
      'text/plain',
      '',
    ]
    const seen = new Set<number>()
    for (let round = 0; round < 300; round += 1) {
      const mail = random.pick(mails)
      const type = random.pick(types)
      const body = Buffer.from(
        type === 'application/json'
          ? JSON.stringify({ Type: 'Notification', Message: JSON.stringify({ content: mail.toString() }) })
          : mail,
      )
      for (let hits = random.int(6); hits > 0; hits -= 1) body[random.int(body.length)] = random.int(256)
      seen.add(
        await status(
          request(
            body.subarray(0, random.int(2) === 0 ? body.length : random.int(body.length)),
            type === '' ? {} : { 'content-type': type },
          ),
        ),
      )
    }
    expect([...seen].filter((code) => code !== 200 && code !== 400)).toEqual([])
    expect(sink.errors).toEqual([])
  })

  it('ingest says what became of a mail; not started it takes none', async () => {
    expect(await provider.ingest(mailOf())).toEqual({ status: 'accepted' })
    expect(await provider.ingest(mailOf({ from: 'no-reply@example.com' }))).toMatchObject({
      status: 'ignored',
    })
    expect(await provider.ingest('')).toEqual({ status: 'not-a-mail' })
    sink.accept = async () => {
      throw new Error('The journal cannot be reached.')
    }
    expect(await provider.ingest(mailOf())).toMatchObject({ status: 'failed' })
    expect(await status(request(mailOf()))).toBe(503)
    await provider.stop()
    expect(await provider.ingest(mailOf())).toEqual({ status: 'stopped' })
    expect(await status(request(mailOf()))).toBe(503)
  })

  it('a replica that never saw a thread answers in it, where the store has a log', async () => {
    const system = await MailSystem.start()
    const log = new MemoryLog(systemClock)
    const replica = async () => {
      const one = new EmailProvider({ ...OPTIONS, smtp: system.smtp })
      const its = Object.assign(new RecordingSink(), { log })
      await one.start(its, new AbortController().signal)
      return { one, its }
    }
    const [a, b] = [await replica(), await replica()]
    await a.one.ingest(mailOf({ id: 'log1@example.com', subject: 'Pedido 9' }))
    await b.one.send({ chatId: a.its.messages[0]!.chatId }, { text: 'desde la otra' })
    expect(system.sent[0]!.raw).toContain('Subject: Re: Pedido 9')
    expect(system.sent[0]!.raw).toContain('In-Reply-To: <log1@example.com>')
    await Promise.all([a.one.stop(), b.one.stop()])
  })
})
