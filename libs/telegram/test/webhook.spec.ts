/** Webhook mode: the secret, what is answered, and delivery by the double (P2, scenarios 5, 17, 25). */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ProviderError, type WebhookRequest } from '@botmesh/core'
import { RecordingSink, SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { TelegramProvider } from '@botmesh/telegram'
import { damageBody } from '../../../test/doubles/damage-body.js'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import { sampleNames, sampleText, TOKEN } from './samples.js'

const SECRET = 'webhook-secret_1'

let telegram: TelegramApiDouble
let provider: TelegramProvider
let sink: RecordingSink

beforeEach(async () => {
  telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
  provider = make({ secret: SECRET })
  sink = new RecordingSink()
  await provider.start(sink, new AbortController().signal)
})
afterEach(async () => {
  await provider.stop()
  await telegram.close()
})

function make(webhook: { secret: string; url?: string; path?: string }): TelegramProvider {
  return new TelegramProvider({ token: TOKEN, apiRoot: telegram.url, webhook, maxBodyBytes: 64 * 1024 })
}

function post(rawBody: string | Uint8Array, secret: string | undefined = SECRET): WebhookRequest {
  return {
    method: 'POST',
    headers: secret === '' ? {} : { 'x-telegram-bot-api-secret-token': secret },
    query: {},
    rawBody: typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody,
  }
}

describe('scenario 25: what is not from Telegram', () => {
  it.each([
    ['missing', ''],
    ['wrong', 'webhook-secret_2'],
    ['a prefix of it', SECRET.slice(0, -1)],
  ])('secret %s: 401, and nothing reaches the runtime', async (_, secret) => {
    expect(await provider.handle!(post(sampleText('text'), secret))).toMatchObject({ status: 401 })
    expect(sink.messages).toEqual([])
  })

  it('bodies that are not JSON, or no update: 400; too large: 413; other methods: 405', async () => {
    for (const body of ['{', '', '[]', '{}', '{"update_id":"7"}', '"x"']) {
      expect(await provider.handle!(post(body))).toMatchObject({ status: 400 })
    }
    expect(await provider.handle!(post(' '.repeat(64 * 1024 + 1)))).toMatchObject({ status: 413 })
    expect(await provider.handle!({ ...post('{}'), method: 'GET' })).toMatchObject({ status: 405 })
  })

  it('an unknown update type is ignored with a debug log', async () => {
    expect(await provider.handle!(post(sampleText('channel-post')))).toMatchObject({ status: 200 })
    expect(sink.logs).toContainEqual({
      level: 'debug',
      details: { provider: provider.id, reason: 'update type "channel_post"' },
      message: 'update ignored',
    })
  })
})

describe('accepting updates', () => {
  it('P2: is shared, open at once, and hands over', async () => {
    expect(provider.capabilities.exclusiveSession).toBeUndefined()
    expect(sink.states).toEqual([{ status: 'connecting' }, { status: 'open' }])
    expect(await provider.handle!(post(sampleText('group-text')))).toMatchObject({ status: 200 })
    expect(sink.messages[0]).toMatchObject({ body: '¿Quedan entradas?', participant: '501002' })
    expect(telegram.polls).toBe(0)
  })

  it('scenario 17: answered once accepted; scenario 5: 503 if it was not', async () => {
    let accept = () => {}
    sink.accept = () => new Promise<void>((resolve) => (accept = resolve))
    let answered = false
    const answer = provider.handle!(post(sampleText('text'))).finally(() => (answered = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    accept()
    expect(await answer).toMatchObject({ status: 200 })
    sink.accept = () => Promise.reject(new Error('journal unreachable'))
    expect(await provider.handle!(post(sampleText('text')))).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
    })
  })

  it('P1: a replica that was not started, was stopped or lost the leadership answers 503', async () => {
    expect(await make({ secret: SECRET }).handle!(post(sampleText('text')))).toMatchObject({ status: 503 })
    const other = make({ secret: SECRET })
    const leadership = new AbortController()
    await other.start(sink, leadership.signal)
    leadership.abort()
    expect(await other.handle!(post(sampleText('text')))).toMatchObject({ status: 503 })
    await provider.stop()
    expect(await provider.handle!(post(sampleText('text')))).toMatchObject({ status: 503 })
    expect(sink.messages).toEqual([])
  })
})

describe('registration and delivery', () => {
  let server: Server
  let receiver: TelegramProvider

  beforeEach(async () => {
    server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const { method = '', headers } = request
        void receiver.handle!({ method, headers, query: {}, rawBody: Buffer.concat(parts) }).then(
          (answer) => {
            response.writeHead(answer.status, answer.headers).end(answer.body)
          },
        )
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    receiver = make({ secret: SECRET, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  })
  afterEach(async () => {
    await receiver.stop()
    telegram.webhook = null
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  it('registers its address with the secret; a refused update comes again and is handled once', async () => {
    const inbox = new RecordingSink()
    let refusals = 1
    inbox.accept = async () => {
      if (refusals-- > 0) throw new Error('not yet')
    }
    await receiver.start(inbox, new AbortController().signal)
    expect(telegram.webhook).toEqual({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/telegram/123456789`,
      secret: SECRET,
    })
    telegram.say(501001, 'one')
    telegram.say(501001, 'two')
    await telegram.until(() => telegram.unconfirmed === 0)
    expect(inbox.bodies).toEqual(['one', 'two'])
    expect(telegram.webhookAnswers).toEqual([503, 200, 200])
  })

  it('stopping leaves the webhook to the other replicas', async () => {
    await receiver.start(new RecordingSink(), new AbortController().signal)
    await receiver.stop()
    expect(telegram.webhook).not.toBeNull()
  })

  it('a wrong token is an error of start', async () => {
    const wrong = new TelegramProvider({
      token: '123456789:AAwrongToken',
      apiRoot: telegram.url,
      webhook: { secret: SECRET, url: 'https://bot.example' },
    })
    const start = wrong.start(new RecordingSink(), new AbortController().signal)
    await expect(start).rejects.toBeInstanceOf(ProviderError)
    expect(wrong.state).toMatchObject({ status: 'closed', final: true })
  })
})

describe('the token', () => {
  it('P3: refused where no address is registered: told as an error, final, and webhooks are answered 503', async () => {
    const wrong = new TelegramProvider({
      token: '123456789:AAwrongToken',
      apiRoot: telegram.url,
      webhook: { secret: SECRET },
    })
    const told = new RecordingSink()
    const started = wrong
      .start(told, new AbortController().signal)
      .catch((error: unknown) => told.error(error))
    await told.until(() => told.errors.length > 0 && wrong.state.status === 'closed')
    await started
    expect(told.errors).toEqual([expect.any(ProviderError)])
    expect(wrong.state).toMatchObject({ final: true, reason: expect.stringContaining('@BotFather') })
    expect(await wrong.handle!(post(sampleText('text')))).toMatchObject({ status: 503 })
    expect(inspect([told.errors, told.logs, told.states], { depth: 9 })).not.toContain('AAwrongToken')
    await wrong.stop()
  })
})

describe('fuzz: mutated updates', () => {
  it('never crash, always 2xx or 4xx', async () => {
    const chance = new SeededRandom(seedOfRun())
    for (let round = 0; round < 3000; round++) {
      const body = damageBody(sampleText(chance.pick(sampleNames)), chance)
      const { status } = await provider.handle!(post(body))
      if (!(status >= 200 && status < 500))
        throw new Error(`SEED=${chance.seed}, round ${round}: ${status} for ${body}`)
    }
    expect(sink.errors).toEqual([])
  })
})
