/** Scenario 25 and the webhook contract: what is answered to whom, and what reaches the runtime. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Message, WebhookRequest } from '@botmesh/core'
import { RecordingSink, SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { MetaProvider, type MetaStatus } from '@botmesh/meta'
import { damageBody } from '../../../test/doubles/damage-body.js'
import { metaText, metaWebhookBody, signMetaBody } from '../../../test/doubles/graph-api.js'
import { PHONE_NUMBER_ID, sampleText } from './samples.js'

const SECRET = 'app-secret-of-the-tests'
const OPTIONS = {
  phoneNumberId: PHONE_NUMBER_ID,
  accessToken: 'EAAtesttoken',
  appSecret: SECRET,
  verifyToken: 'verify-me',
  maxBodyBytes: 64 * 1024,
}

function post(rawBody: string | Uint8Array, signature = signMetaBody(rawBody, SECRET)): WebhookRequest {
  return {
    method: 'POST',
    headers: signature === '' ? {} : { 'x-hub-signature-256': signature },
    query: {},
    rawBody: typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody,
  }
}

let statuses: MetaStatus[]
let provider: MetaProvider
let sink: RecordingSink

beforeEach(async () => {
  statuses = []
  provider = new MetaProvider({ ...OPTIONS, onStatus: (status) => statuses.push(status) })
  sink = new RecordingSink()
  await provider.start(sink, new AbortController().signal)
})
afterEach(() => provider.stop())

describe('the verification handshake', () => {
  const get = (query: Record<string, string>): WebhookRequest => ({
    method: 'GET',
    headers: {},
    query,
    rawBody: new Uint8Array(),
  })

  it('gives the challenge back to who knows the verify token', async () => {
    const query = { 'hub.mode': 'subscribe', 'hub.verify_token': 'verify-me', 'hub.challenge': '1158201444' }
    expect(await provider.handle(get(query))).toMatchObject({ status: 200, body: '1158201444' })
    expect(await provider.handle(get({ ...query, 'hub.verify_token': 'guess' }))).toMatchObject({
      status: 403,
    })
    expect(await provider.handle(get({}))).toMatchObject({ status: 400 })
  })
})

describe('scenario 25: what is not from the platform', () => {
  it.each([
    ['missing', ''],
    ['wrong', `sha256=${'0'.repeat(64)}`],
    ['of another secret', signMetaBody(sampleText('text'), 'other')],
    ['not hexadecimal', 'sha256=zz'],
    ['without its prefix', signMetaBody(sampleText('text'), SECRET).slice(7)],
  ])('signature %s: 401, and nothing reaches the runtime', async (_, signature) => {
    expect(await provider.handle(post(sampleText('text'), signature))).toMatchObject({ status: 401 })
    expect(sink.messages).toEqual([])
  })

  it('the signature is over the raw bytes: one changed byte is refused', async () => {
    const body = Buffer.from(sampleText('text'))
    const signature = signMetaBody(body, SECRET)
    body[body.length - 3] = 0x20
    expect(await provider.handle(post(body, signature))).toMatchObject({ status: 401 })
  })

  it('bodies that are not JSON, no object, or not UTF-8: 400', async () => {
    for (const body of ['{', '', '[]', '"text"', 'null']) {
      expect(await provider.handle(post(body))).toMatchObject({ status: 400 })
    }
    expect(await provider.handle(post(Buffer.from([0x7b, 0xff, 0x7d])))).toMatchObject({ status: 400 })
  })

  it('a body over the bound: 413, without looking at it', async () => {
    expect(await provider.handle(post(' '.repeat(64 * 1024 + 1)))).toMatchObject({ status: 413 })
  })

  it('other methods: 405', async () => {
    expect(await provider.handle({ ...post('{}'), method: 'PUT' })).toMatchObject({ status: 405 })
  })

  it('unknown event types are ignored with a debug log', async () => {
    const body = JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [{ id: '1', changes: [{ field: 'account_update', value: {} }] }],
    })
    expect(await provider.handle(post(body))).toMatchObject({ status: 200 })
    expect(sink.messages).toEqual([])
    expect(sink.logs).toContainEqual({
      level: 'debug',
      details: { provider: provider.id, reason: 'event type "account_update"' },
      message: 'webhook event ignored',
    })
  })
})

describe('accepting messages', () => {
  it('T2: several messages of one body reach the runtime in order', async () => {
    expect(await provider.handle(post(sampleText('several')))).toMatchObject({ status: 200 })
    const of = (chat: string) => sink.messages.filter((one) => one.chatId === chat).map((one) => one.body)
    expect(of('34600111222')).toEqual(['uno', 'dos', 'cuatro'])
    expect(of('34600555666')).toEqual(['tres'])
  })

  it('T2: a slow first message is not overtaken by the second of its chat, nor holds up another chat', async () => {
    let free = () => {}
    const gate = new Promise<void>((resolve) => (free = resolve))
    sink.accept = (message) => (message.body === 'one' ? gate : Promise.resolve())
    const body = metaWebhookBody(PHONE_NUMBER_ID, [
      metaText('1', 'a', 'one'),
      metaText('1', 'b', 'two'),
      metaText('2', 'c', 'three'),
    ])
    const answer = provider.handle(post(body))
    await sink.until(() => sink.messages.length === 1)
    expect(sink.bodies).toEqual(['three'])
    free()
    expect(await answer).toMatchObject({ status: 200 })
    expect(sink.bodies).toEqual(['three', 'one', 'two'])
  })

  it('scenario 17: answers 200 when the runtime accepted, not before and without waiting for a handler', async () => {
    let accept = () => {}
    sink.accept = () => new Promise<void>((resolve) => (accept = resolve))
    let answered = false
    const answer = provider.handle(post(sampleText('text'))).then((response) => {
      answered = true
      return response
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    accept()
    expect(await answer).toMatchObject({ status: 200 })
  })

  it('scenario 5: a refused message is answered 503, so that the platform delivers again, and none overtakes it', async () => {
    const tried: string[] = []
    sink.accept = async (message: Message) => {
      tried.push(message.body)
      if (message.body === 'uno') throw new Error('journal unreachable')
    }
    const response = await provider.handle(post(sampleText('several')))
    expect(response).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    expect(tried).toEqual(['uno', 'tres'])
    sink.accept = async () => {}
    expect(await provider.handle(post(sampleText('several')))).toMatchObject({ status: 200 })
  })

  it('statuses reach the callback, never the runtime; a callback that throws or rejects is reported', async () => {
    expect(await provider.handle(post(sampleText('statuses')))).toMatchObject({ status: 200 })
    expect(statuses.map((status) => status.status)).toEqual(['sent', 'delivered', 'failed'])
    expect(sink.messages).toEqual([])
    const failing = (): never => {
      throw new Error('of the application')
    }
    for (const onStatus of [failing, async () => failing()]) {
      const thrower = new MetaProvider({ ...OPTIONS, onStatus })
      await thrower.start(sink, new AbortController().signal)
      expect(await thrower.handle(post(sampleText('statuses')))).toMatchObject({ status: 200 })
    }
    expect(sink.errors).toHaveLength(6)
  })

  it('problems of the account are reported', async () => {
    expect(await provider.handle(post(sampleText('account-error')))).toMatchObject({ status: 200 })
    expect(sink.errors).toEqual([
      expect.objectContaining({ code: 'PROVIDER', message: expect.stringContaining('130429') }),
    ])
  })

  it('P1: a replica that was not started, or lost the leadership, answers 503 with Retry-After', async () => {
    const standby = new MetaProvider(OPTIONS)
    expect(await standby.handle(post(sampleText('text')))).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
    })
    const leadership = new AbortController()
    await standby.start(sink, leadership.signal)
    leadership.abort()
    expect(standby.state).toEqual({ status: 'closed', reason: 'leadership lost' })
    expect(await standby.handle(post(sampleText('text')))).toMatchObject({ status: 503 })
    expect(sink.messages).toEqual([])
  })
})

describe('fuzz: mutated bodies', () => {
  it('never crash, always 2xx or 4xx', async () => {
    const chance = new SeededRandom(seedOfRun())
    const names = ['several', 'button-reply', 'contacts', 'document', 'statuses', 'reaction', 'account-error']
    for (let round = 0; round < 3000; round++) {
      const body = damageBody(sampleText(chance.pick(names)), chance)
      const { status } = await provider.handle(post(body))
      if (!(status >= 200 && status < 500))
        throw new Error(`SEED=${chance.seed}, round ${round}: ${status} for ${body}`)
    }
    expect(sink.errors.every((error) => error instanceof Error)).toBe(true)
  })
})
