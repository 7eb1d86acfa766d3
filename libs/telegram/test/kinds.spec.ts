/** Every kind of thing that users send and bots answer, over the real client, in both modes, against the double. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { chatKeyOf, type Clock, type Message } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { TelegramProvider, type TelegramOptions } from '@botmesh/telegram'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import { HeldClock } from './held-clock.js'
import { BOT_ID, sample, TOKEN } from './samples.js'

const SECRET = 'webhook-secret_1'
const LUCIA = 501001
const GROUP = { id: -1002003004005, type: 'supergroup', title: 'Club de lectura' }

let telegram: TelegramApiDouble
const servers: Server[] = []
let provider: TelegramProvider
let sink: RecordingSink

beforeEach(async () => {
  telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
})
afterEach(async () => {
  await provider.stop()
  telegram.webhook = null
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  await telegram.close()
})

async function open(
  mode: 'polling' | 'webhook',
  options: Partial<TelegramOptions> = {},
  clock?: Clock,
): Promise<void> {
  const common = { token: TOKEN, apiRoot: telegram.url, ...options }
  provider = new TelegramProvider(
    mode === 'polling'
      ? common
      : { ...common, webhook: { secret: SECRET, url: `http://127.0.0.1:${await listen()}` } },
  )
  sink = new RecordingSink(clock === undefined ? {} : { clock })
  await provider.start(sink, new AbortController().signal)
  await sink.until(() => provider.state.status === 'open')
}

/** A plain HTTP server in front of the provider. @returns its port. */
async function listen(): Promise<number> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const { method = '', headers } = request
      void provider.handle!({ method, headers, query: {}, rawBody: Buffer.concat(parts) }).then((answer) => {
        response.writeHead(answer.status, answer.headers).end(answer.body)
      })
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** What Telegram would deliver, with its number left out: the double gives its own. */
const update = (name: string): Record<string, unknown> => {
  const { update_id: _number, ...fields } = sample(name)
  return fields
}

async function receive(...updates: Record<string, unknown>[]): Promise<Message[]> {
  for (const fields of updates) telegram.push(fields)
  await telegram.until(() => telegram.unconfirmed === 0)
  return sink.messages
}

describe.each(['polling', 'webhook'] as const)('B4: received by %s', (mode) => {
  it('text, media with their content, contacts and places', async () => {
    await open(mode)
    const messages = await receive(
      ...['text', 'photo', 'document', 'voice', 'location', 'contact'].map(update),
    )
    expect(messages.map(({ type }) => type)).toEqual([
      'text',
      'media',
      'media',
      'media',
      'location',
      'contact',
    ])
    const kinds = messages.flatMap(({ media }) => (media === undefined ? [] : [media.kind]))
    expect(kinds).toEqual(['image', 'document', 'audio'])
    const { media } = messages[1]!
    telegram.files.set(media!.id!, new Uint8Array(321))
    expect((await provider.download(media!)).data.byteLength).toBe(321)
  })

  it('callbacks: with the words of the button, and the spinner on it ends', async () => {
    await open(mode)
    const [message] = await receive(update('callback'))
    expect(message).toMatchObject({ type: 'button', body: 'Talla M', buttonId: 'size:M' })
    await telegram.until(() => telegram.methods.includes('answerCallbackQuery'))
    expect(telegram.calls.map(({ payload }) => payload)).toEqual([{ callback_query_id: '2151795' }])
  })

  it('groups: each participant has a chat key of their own, and the answer goes to the group', async () => {
    await open(mode)
    const messages = await receive(...['group-text', 'command-in-group'].map(update))
    expect(messages.map((message) => chatKeyOf({ provider: provider.id, ...message }))).toEqual([
      `telegram%3A${BOT_ID}/${GROUP.id}/501002`,
      `telegram%3A${BOT_ID}/${GROUP.id}/501001`,
    ])
    const { chatId, participant = '', id } = messages[0]!
    await provider.send({ chatId, participant }, { text: 'Sí', replyTo: id })
    const quoted = Number(id.split(':')[1])
    expect(telegram.sent[0]?.payload).toMatchObject({
      chat_id: GROUP.id,
      reply_parameters: { message_id: quoted },
    })
  })

  it('edited messages: as messages that name what they replace, or not at all', async () => {
    await open(mode, { edits: 'deliver' })
    const [message] = await receive(update('edited'))
    expect(message).toMatchObject({ body: 'Talla L, perdón', editOf: expect.stringMatching(/^501001:\d+$/) })
    await provider.stop()
    telegram.webhook = null
    await open(mode)
    expect(await receive(update('edited'), update('text'))).toHaveLength(1)
  })

  it('commands: in private and in groups, but for those of other bots, whose names are compared with its own', async () => {
    await open(mode)
    for (const text of ['/start@otro_bot', '/cancel@Tienda_Bot ahora', '/help'])
      telegram.say(LUCIA, text, { chat: GROUP })
    await receive(update('command'))
    expect(sink.messages.every(({ type }) => type === 'command')).toBe(true)
    const said = (isGroup: boolean) =>
      sink.messages.filter((one) => one.isGroup === isGroup).map(({ body }) => body)
    expect({ group: said(true), alone: said(false) }).toEqual({
      group: ['/cancel ahora', '/help'],
      alone: ['/cancel ahora'],
    })
    expect(telegram.methods.filter((method) => method === 'getMe')).toHaveLength(1)
    expect(sink.logs).toContainEqual(
      expect.objectContaining({ details: expect.objectContaining({ reason: 'a command for another bot' }) }),
    )
  })

  it('a name that could not be learnt at once does not hold up messages', async () => {
    telegram.failNext('getMe', { kind: 'error', code: 500 })
    await open(mode)
    telegram.say(LUCIA, '/start@tienda_bot')
    await receive(update('text'))
    expect(sink.bodies).toEqual(['/start', 'Hola, quiero hacer un pedido'])
    expect(sink.errors).toEqual([])
  })

  it('a question for the name that is never answered holds up a command for 3 seconds, once', async () => {
    telegram.failNext('getMe', { kind: 'silence' })
    const clock = new HeldClock()
    await open(mode, {}, clock)
    telegram.say(LUCIA, '/start@tienda_bot')
    await clock.armed()
    expect(sink.bodies).toEqual([])
    expect(clock.nextMs).toBe(3000)
    clock.advance(3000)
    await sink.until(() => sink.messages.length === 1)
    telegram.say(LUCIA, '/help@tienda_bot')
    await sink.until(() => sink.messages.length === 2)
    expect(sink.bodies).toEqual(['/start', '/help'])
    expect(clock.nextMs).toBeUndefined()
  })

  it('an answer that names no bot is told as that, not as a failure of the network', async () => {
    telegram.failNext('getMe', { kind: 'text', status: 200, text: '{"ok":true,"result":{}}' })
    await open(mode)
    telegram.say(LUCIA, '/start@tienda_bot')
    await receive(update('text'))
    expect(sink.bodies).toEqual(['/start', 'Hola, quiero hacer un pedido'])
    expect(sink.logs).toContainEqual(
      expect.objectContaining({
        details: { provider: provider.id, reason: 'the answer to getMe names no bot: check apiRoot' },
      }),
    )
  })
})

describe('B4: sent', () => {
  const TO = { chatId: String(LUCIA) }
  const payloads = () => telegram.calls.map(({ method, payload }) => ({ method, payload }))

  beforeEach(() => open('polling'))

  it('text and media of each kind, by link, by id and as bytes', async () => {
    const url = 'https://shop.example/a'
    await provider.send(TO, { text: 'Hola' })
    await provider.send(TO, { media: { kind: 'image', url, caption: 'Azul' } })
    await provider.send(TO, { media: { kind: 'video', url } })
    await provider.send(TO, { media: { kind: 'audio', id: 'AwAC1' } })
    await provider.send(TO, { media: { kind: 'sticker', id: 'CAAC1' } })
    const data = new Uint8Array(64)
    await provider.send(TO, { media: { kind: 'audio', data, mimeType: 'audio/ogg', fileName: 'nota.ogg' } })
    await provider.send(TO, { text: 'La factura', media: { kind: 'document', data, fileName: 'f.pdf' } })
    const chat = { chat_id: LUCIA }
    expect(payloads().slice(0, 5)).toEqual([
      { method: 'sendMessage', payload: { ...chat, text: 'Hola' } },
      { method: 'sendPhoto', payload: { ...chat, photo: url, caption: 'Azul' } },
      { method: 'sendVideo', payload: { ...chat, video: url } },
      { method: 'sendAudio', payload: { ...chat, audio: 'AwAC1' } },
      { method: 'sendSticker', payload: { ...chat, sticker: 'CAAC1' } },
    ])
    expect(telegram.calls.slice(5)).toMatchObject([
      { method: 'sendVoice', files: [{ name: 'nota.ogg', bytes: 64 }] },
      { method: 'sendDocument', payload: { caption: 'La factura' }, files: [{ name: 'f.pdf', bytes: 64 }] },
    ])
  })

  it('keyboards of buttons and of lists, whose choices come back', async () => {
    const buttons = [{ id: 'size:M', text: 'Talla M' }]
    const list = { button: 'Elegir', sections: [{ rows: [{ id: 'aurora', title: 'Aurora' }] }] }
    await provider.send(TO, { text: '¿Talla?', buttons })
    await provider.send(TO, { text: '¿Cuál?', list })
    const keyboards = telegram.sent.map(({ payload }) => payload['reply_markup'])
    expect(keyboards).toEqual([
      { inline_keyboard: [[{ text: 'Talla M', callback_data: 'size:M' }]] },
      { inline_keyboard: [[{ text: 'Aurora', callback_data: 'aurora' }]] },
    ])
    const pressed = {
      id: '9',
      from: { id: LUCIA, is_bot: false, first_name: 'Lucía' },
      data: 'aurora',
      message: {
        message_id: 2,
        date: 1,
        chat: { id: LUCIA, type: 'private' },
        reply_markup: keyboards[1],
      },
    }
    const [message] = await receive({ callback_query: pressed })
    expect(message).toMatchObject({ type: 'button', buttonId: 'aurora', body: 'Aurora' })
  })

  it('edits of what was sent, and typing', async () => {
    const { id } = await provider.send(TO, { text: '¿Talla?', buttons: [{ id: 'M', text: 'M' }] })
    await provider.edit(id, { text: 'Talla M ✔' })
    await provider.typing({ chatId: `${GROUP.id}#45` })
    expect(payloads().slice(1)).toEqual([
      {
        method: 'editMessageText',
        payload: { chat_id: LUCIA, message_id: Number(id.split(':')[1]), text: 'Talla M ✔' },
      },
      { method: 'sendChatAction', payload: { chat_id: GROUP.id, message_thread_id: 45, action: 'typing' } },
    ])
  })
})
