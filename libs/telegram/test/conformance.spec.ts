/** The rules that every transport keeps, checked on Telegram in both modes against the double. */
import { describe, expect, it } from '@jest/globals'
import type { WebhookRequest } from '@botmesh/core'
import { providerSuite, type ProviderBed } from '@botmesh/core/testing'
import { TelegramProvider, type TelegramOptions } from '@botmesh/telegram'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import { TOKEN } from './samples.js'

const SECRET = 'webhook-secret_1'
const WRONG = '123456789:AAwrongTokenOfTheTests'

async function bedOf(
  options: Partial<TelegramOptions>,
): Promise<{ telegram: TelegramApiDouble; bed: ProviderBed }> {
  const telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
  const provider = new TelegramProvider({
    token: TOKEN,
    apiRoot: telegram.url,
    maxBodyBytes: 4096,
    ...options,
  })
  return {
    telegram,
    bed: {
      provider,
      connections: () => telegram.openPolls,
      userWrites: async (body) => void telegram.say(501001, body),
      received: () => telegram.sent.map((call) => call.payload['text'] as string),
      refuseNextSend: () =>
        telegram.failNext('sendMessage', { kind: 'error', code: 403, description: 'Forbidden' }),
      limitNextSend: (retryAfterMs) =>
        telegram.failNext('sendMessage', {
          kind: 'error',
          code: 429,
          parameters: { retry_after: retryAfterMs / 1000 },
        }),
      otherChat: '501009',
      refused: () => new TelegramProvider({ token: WRONG, apiRoot: telegram.url, ...options }),
      secrets: [TOKEN, WRONG],
      loseNextAnswer: () => telegram.failNext('sendMessage', { kind: 'lost-answer' }),
      close: () => telegram.close(),
    },
  }
}

const COMMON = { refusesSends: true, redelivers: true, limitsSends: true, losesAnswers: true }

providerSuite(
  { describe, it, expect },
  {
    name: 'Telegram by long poll',
    guarantees: { ...COMMON, connects: true, refusesCredentials: true, groups: true },
    bed: async () => {
      const { telegram, bed } = await bedOf({})
      // A poll begins a moment after the state says open; between two polls none is open.
      return {
        ...bed,
        groupWrites: async (body) =>
          void telegram.say(501001, body, {
            chat: { id: -1002003004005, type: 'supergroup', title: 'Tienda' },
          }),
        connections: () => (bed.provider.state.status === 'open' ? telegram.mostPolls : telegram.openPolls),
      }
    },
  },
)

function post(body: string, secret = SECRET): WebhookRequest {
  return {
    method: 'POST',
    headers: { 'x-telegram-bot-api-secret-token': secret },
    query: {},
    rawBody: Buffer.from(body),
  }
}

providerSuite(
  { describe, it, expect },
  {
    name: 'Telegram by webhook',
    guarantees: { ...COMMON, connects: false, webhook: true },
    bed: async () => {
      const { telegram, bed } = await bedOf({ webhook: { secret: SECRET } })
      let serial = 0
      let closed = false
      let delivered: Promise<unknown> = Promise.resolve()
      const write = (text: string) =>
        post(
          JSON.stringify({
            update_id: ++serial,
            message: {
              message_id: serial,
              date: 1_767_225_600,
              chat: { id: 501001, type: 'private' },
              from: { id: 501001, is_bot: false, first_name: 'Lucía' },
              text,
            },
          }),
        )
      /** As Telegram does: one update after the other, again and again until it is taken. */
      const deliver = async (request: WebhookRequest) => {
        while (!closed && (await bed.provider.handle!(request)).status !== 200) {
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      return {
        ...bed,
        connections: () => 0,
        userWrites: async (text) => {
          const request = write(text)
          delivered = delivered.then(() => deliver(request))
        },
        requests: {
          unsigned: () => post('{"update_id":1}', ''),
          notJson: () => post('{'),
          tooLarge: () => post(' '.repeat(4097)),
          unknownEvent: () => post('{"update_id":1,"shipping_query":{}}'),
          good: () => write('hola'),
        },
        close: async () => {
          closed = true
          await delivered
          await telegram.close()
        },
      }
    },
  },
)
