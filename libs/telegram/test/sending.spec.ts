/** Sending against the double: what succeeded, and what each failure means (scenario 16). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { LeaseLostError, SendError } from '@botmesh/core'
import { TelegramProvider } from '@botmesh/telegram'
import { TelegramApiDouble, type TelegramFault } from '../../../test/doubles/telegram-api.js'
import { TOKEN } from './samples.js'

const TO = { chatId: '501001' }

let telegram: TelegramApiDouble
let provider: TelegramProvider

beforeEach(async () => {
  telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
  provider = new TelegramProvider({
    token: TOKEN,
    account: 'tienda',
    apiRoot: telegram.url,
    sendTimeoutMs: 300,
  })
})
afterEach(() => telegram.close())

/** The SendError of a send that fails; the token is nowhere in it. */
async function failureOf(send: Promise<unknown>): Promise<SendError> {
  const error = await send.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(SendError)
  expect(JSON.stringify(everythingIn(error))).not.toContain('AAsecretTokenOfTheTests')
  return error as SendError
}

/** An error with its hidden parts, causes included. */
function everythingIn(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, stack, cause } = error
  return { ...(error as object), name, message, stack, cause: everythingIn(cause) }
}

describe('sending', () => {
  it('text: one call, and an id that can be quoted and edited', async () => {
    const sent = await provider.send(TO, { text: 'Hola' })
    expect(telegram.sent).toEqual([
      expect.objectContaining({ method: 'sendMessage', payload: { chat_id: 501001, text: 'Hola' } }),
    ])
    expect(sent.id).toMatch(/^501001:\d+$/)
    await provider.edit(sent.id, { text: 'Adiós' })
    expect(telegram.calls.at(-1)).toMatchObject({
      method: 'editMessageText',
      payload: { chat_id: 501001, message_id: Number(sent.id.split(':')[1]) },
    })
    await provider.typing(TO)
    expect(telegram.calls.at(-1)).toMatchObject({ method: 'sendChatAction', payload: { action: 'typing' } })
  })

  it('bytes are uploaded in the same call', async () => {
    const data = new Uint8Array(5000)
    await provider.send(TO, { media: { kind: 'document', data, fileName: 'a.pdf' } })
    expect(telegram.calls[0]).toMatchObject({
      method: 'sendDocument',
      payload: { chat_id: '501001' },
      files: [{ name: 'a.pdf', bytes: 5000 }],
    })
  })

  it('downloads what a user sent, bounded', async () => {
    telegram.files.set('F1', new Uint8Array(2000))
    expect((await provider.download({ id: 'F1' })).data.byteLength).toBe(2000)
    expect(await failureOf(provider.download({ id: 'F1' }, { maxBytes: 1000 }))).toMatchObject({
      outcome: 'final',
    })
    expect(await failureOf(provider.download({ id: 'gone' }))).toMatchObject({ outcome: 'retryable' })
  })

  it('K4: makes no request once its turn is lost', async () => {
    const lost = AbortSignal.abort(new LeaseLostError('telegram:tienda/1', 'expired'))
    await expect(provider.send(TO, { text: 'late' }, { signal: lost })).rejects.toThrow(LeaseLostError)
    expect(telegram.calls).toEqual([])
  })
})

describe('scenario 16: what a failed send means', () => {
  const refusal = (
    code: number,
    description: string,
    parameters: { retry_after?: number; migrate_to_chat_id?: number } = {},
  ): TelegramFault => ({ kind: 'error', code, description, parameters })

  it.each<[string, TelegramFault, object]>([
    [
      'blocked by the user',
      refusal(403, 'Forbidden: bot was blocked by the user'),
      { outcome: 'final', platformCode: '403' },
    ],
    ['bad request', refusal(400, 'Bad Request: chat not found'), { outcome: 'final' }],
    ['token revoked', refusal(401, 'Unauthorized'), { outcome: 'final', platformCode: '401' }],
    [
      'too many requests',
      refusal(429, 'Too Many Requests: retry after 9', { retry_after: 9 }),
      { outcome: 'retryable', retryAfterMs: 9000, scope: 'chat' },
    ],
    ['server error', refusal(500, 'Internal Server Error'), { outcome: 'retryable' }],
    ['a gateway without JSON', { kind: 'text', status: 502, text: '<html>' }, { outcome: 'uncertain' }],
    ['answer lost', { kind: 'lost-answer' }, { outcome: 'uncertain' }],
    ['silence', { kind: 'silence' }, { outcome: 'uncertain' }],
  ])('%s', async (_, fault, details) => {
    telegram.failNext('sendMessage', fault)
    expect((await failureOf(provider.send(TO, { text: 'x' }))).details).toMatchObject({
      provider: 'telegram:tienda',
      ...details,
    })
  })

  it('says what to do', async () => {
    telegram.failNext(
      'sendMessage',
      refusal(400, 'Bad Request: group chat was upgraded', { migrate_to_chat_id: -100777 }),
    )
    expect((await failureOf(provider.send(TO, { text: 'x' }))).message).toContain(
      'supergroup -100777: write there',
    )
    telegram.failNext('sendMessage', refusal(403, 'Forbidden: bot was blocked by the user'))
    expect((await failureOf(provider.send(TO, { text: 'x' }))).message).toContain('The user blocked the bot')
  })

  it('a refused connection is retryable', async () => {
    const { url } = telegram
    await telegram.close()
    const lonely = new TelegramProvider({ token: TOKEN, apiRoot: url })
    expect((await failureOf(lonely.send(TO, { text: 'x' }))).outcome).toBe('retryable')
    telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
  })
})
