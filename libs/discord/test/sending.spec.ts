/** What goes out: the calls that are made, what their failures mean, and the answers to commands and buttons. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SendError } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { CHANNEL, DM, GUILD, LUCIA, type DiscordFault } from '../../../test/doubles/discord/index.js'
import { Bench, statuses, type Started } from './support/bench.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())

const MESSAGES = /messages$/
const TO = { chatId: CHANNEL, participant: LUCIA.id }
const rejected = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error)
const last = () => bench.discord.sent.at(-1)

describe('scenario 16: what a failed send means', () => {
  it.each<[string, DiscordFault, object, string]>([
    [
      'no permission',
      { kind: 'error', status: 403, code: 50013, message: 'Missing Permissions' },
      { outcome: 'final', details: { platformCode: '50013' } },
      'Send Messages',
    ],
    [
      'not in that channel',
      { kind: 'error', status: 403, code: 50001, message: 'Missing Access' },
      { outcome: 'final' },
      'invite it',
    ],
    [
      'unknown channel',
      { kind: 'error', status: 404, code: 10003, message: 'Unknown Channel' },
      { outcome: 'final', details: { platformCode: '10003' } },
      'no such channel',
    ],
    [
      'direct messages closed',
      { kind: 'error', status: 403, code: 50007, message: 'Cannot send messages to this user' },
      { outcome: 'final' },
      'share a server',
    ],
    [
      'too large for the server',
      { kind: 'error', status: 413, code: 40005, message: 'Request entity too large' },
      { outcome: 'final' },
      'send a smaller one',
    ],
    [
      'malformed',
      { kind: 'error', status: 400, code: 50035, message: 'Invalid Form Body' },
      { outcome: 'final' },
      'Invalid Form Body',
    ],
    [
      'revoked token',
      { kind: 'error', status: 401, code: 0, message: '401: Unauthorized' },
      { outcome: 'final' },
      'Developer Portal',
    ],
    [
      'archived thread',
      { kind: 'error', status: 400, code: 50083, message: 'Thread is archived' },
      { outcome: 'final' },
      'unarchive',
    ],
    ['unavailable', { kind: 'error', status: 503 }, { outcome: 'retryable', retryable: true }, '503'],
    [
      'lost by a gateway of theirs',
      { kind: 'error', status: 504 },
      { outcome: 'uncertain' },
      'may have acted',
    ],
    [
      'a long pause',
      { kind: 'limit', retryAfterMs: 9_000 },
      { outcome: 'retryable', details: { retryAfterMs: 9_000, scope: 'chat' } },
      'wait 9000 ms',
    ],
    [
      'the whole bot',
      { kind: 'limit', retryAfterMs: 2_000, global: true },
      { outcome: 'retryable', details: { retryAfterMs: 2_000, scope: 'account' } },
      'wait 2000 ms',
    ],
    ['no answer', { kind: 'lost-answer' }, { outcome: 'uncertain' }, 'may have acted'],
  ])('%s', async (_what, fault, expected, advice) => {
    bench.discord.failNext(MESSAGES, fault)
    const error = await rejected(bench.provider().send(TO, { text: 'hola' }))
    expect(error).toBeInstanceOf(SendError)
    expect(error).toMatchObject({ ...expected, message: expect.stringContaining(advice) })
    expect(error).toMatchObject({ details: { provider: 'discord:tienda' } })
  })

  it('a refused token is refused again, not forgotten', async () => {
    const provider = bench.provider()
    bench.discord.failNext(MESSAGES, { kind: 'error', status: 401, code: 0, message: '401: Unauthorized' })
    await rejected(provider.send(TO, { text: 'uno' }))
    await provider.send(TO, { text: 'dos' })
    expect(last()?.body['content']).toBe('dos')
  })

  it('Discord that cannot be reached: retryable; that does not answer: uncertain', async () => {
    const silent = bench.provider({ sendTimeoutMs: 150 })
    bench.discord.failNext(MESSAGES, { kind: 'silence' })
    expect(await rejected(silent.send(TO, { text: 'hola' }))).toMatchObject({ outcome: 'uncertain' })
    const nowhere = bench.provider({ apiRoot: 'http://127.0.0.1:9/api' })
    expect(await rejected(nowhere.send(TO, { text: 'hola' }))).toMatchObject({ outcome: 'retryable' })
  })

  it('a pause asked for one channel concerns that one only', async () => {
    const provider = bench.provider()
    bench.discord.failNext(MESSAGES, { kind: 'limit', retryAfterMs: 60_000 })
    const error = await rejected(provider.send({ chatId: CHANNEL }, { text: 'uno' }))
    expect(error).toMatchObject({ details: { scope: 'chat', retryAfterMs: 60_000 } })
    await provider.send({ chatId: DM }, { text: 'dos' })
    expect(bench.discord.sent.map(({ body }) => body['content'])).toEqual(['dos'])
  })

  it('a short pause is waited for in order; L2: a turn lost meanwhile sends nothing', async () => {
    const provider = bench.provider()
    bench.discord.failNext(MESSAGES, { kind: 'limit', retryAfterMs: 1_000 })
    const lost = new AbortController()
    const first = provider.send(TO, { text: 'uno' })
    const second = rejected(provider.send(TO, { text: 'dos' }, { signal: lost.signal }))
    await bench.discord.until(({ requests }) => requests.length === 1)
    lost.abort(new Error('the turn was lost'))
    await first
    expect(await second).toMatchObject({ message: 'the turn was lost' })
    expect(bench.discord.sent.map(({ body }) => body['content'])).toEqual(['uno'])
  })

  it('D2: attempts of one send carry one nonce, and Discord makes one message of them', async () => {
    const provider = bench.provider()
    bench.discord.failNext(MESSAGES, { kind: 'lost-answer' }, { kind: 'error', status: 502 })
    const options = { idempotencyKey: 'discord%3Atienda/1#r:1/step/0' }
    expect(await rejected(provider.send(TO, { text: 'hola' }, options))).toMatchObject({
      outcome: 'uncertain',
    })
    expect(await rejected(provider.send(TO, { text: 'hola' }, options))).toMatchObject({
      outcome: 'retryable',
    })
    const { id } = await provider.send(TO, { text: 'hola' }, options)
    expect(id).toMatch(/^\d+$/)
    expect(bench.discord.sent).toHaveLength(1)
    expect(String(last()?.body['nonce'])).toHaveLength(25)
  })
})

describe('messages', () => {
  it('text with buttons and a quote', async () => {
    const buttons = [{ id: 'size:S', text: 'Talla S' }]
    await bench.provider().send(TO, { text: '¿Talla?', buttons, replyTo: '1457800000000000001' })
    expect(last()).toMatchObject({
      route: `POST /channels/${CHANNEL}/messages`,
      body: {
        content: '¿Talla?',
        allowed_mentions: { parse: ['users'] },
        message_reference: { message_id: '1457800000000000001', fail_if_not_exists: false },
        components: [{ type: 1, components: [{ type: 2, custom_id: 'size:S', label: 'Talla S' }] }],
      },
    })
  })

  it('a file, with its words', async () => {
    const data = new Uint8Array(2_048).fill(7)
    const media = {
      kind: 'document' as const,
      data,
      mimeType: 'application/pdf',
      fileName: 'f.pdf',
      caption: 'Tu factura',
    }
    await bench.provider().send(TO, { media })
    expect(last()).toMatchObject({
      body: { content: 'Tu factura' },
      files: [{ name: 'f.pdf', bytes: 2_048 }],
    })
  })

  it('a file over the limit is refused before anything is sent, with what to do', async () => {
    const media = { kind: 'image' as const, data: new Uint8Array(101) }
    const error = await rejected(bench.provider({ maxFileBytes: 100 }).send(TO, { media }))
    expect(error).toMatchObject({ outcome: 'final', message: expect.stringContaining('raise maxFileBytes') })
    expect(bench.discord.requests).toEqual([])
  })

  it('a long text becomes several messages; one that stops midway is uncertain', async () => {
    const provider = bench.provider()
    const text = 'palabra '.repeat(600).trim()
    await provider.send(TO, { text, buttons: [{ id: 'a', text: 'A' }] })
    const parts = bench.discord.sent.map(({ body }) => body)
    expect(parts.map(({ content }) => content).join(' ')).toBe(text)
    expect(parts.map((body) => 'components' in body)).toEqual([false, false, true])
    bench.discord.failNext(
      MESSAGES,
      { kind: 'limit', retryAfterMs: 0 },
      { kind: 'error', status: 403, code: 50013 },
    )
    expect(await rejected(provider.send(TO, { text: 'x'.repeat(10) }))).toMatchObject({ outcome: 'final' })
    const { sent } = bench.discord
    const second = provider.send(TO, { text: 'y'.repeat(3_000) })
    await bench.discord.until((discord) => discord.sent.length > sent.length)
    bench.discord.failNext(MESSAGES, { kind: 'error', status: 403, code: 50013 })
    expect(await rejected(second)).toMatchObject({
      outcome: 'uncertain',
      message: 'Only 1 of 2 parts of the text arrived.',
    })
  })

  it('edits, typing, and a direct chat with somebody who has not written yet', async () => {
    const provider = bench.provider()
    await provider.edit(TO, '77', { text: 'mejor así' })
    await provider.typing(TO)
    expect(await provider.directChat(LUCIA.id)).toBe(DM)
    expect(bench.discord.requests).toEqual([
      `PATCH /channels/${CHANNEL}/messages/77`,
      `POST /channels/${CHANNEL}/typing`,
      'POST /users/@me/channels',
    ])
  })
})

describe('commands and buttons', () => {
  const command = { data: { id: '1', type: 1, name: 'pedido' } }
  const inGuild = {
    guild_id: GUILD,
    channel_id: CHANNEL,
    channel: { id: CHANNEL, type: 0 },
    user: undefined,
    member: { nick: null, user: LUCIA },
  }

  async function received(
    fields: Record<string, unknown>,
  ): Promise<Started & { token: string; inboundId: string }> {
    const started = await bench.open()
    const { token } = bench.discord.interact(fields)
    await started.sink.until(({ messages }) => messages.length === 1)
    return { ...started, token, inboundId: started.sink.messages[0]?.id ?? '' }
  }

  it('a command is deferred at once; its first answer fills the place, the next follow up', async () => {
    const { provider, token, inboundId } = await received({ ...command, ...inGuild })
    await provider.send(TO, { text: 'uno' }, { inboundId })
    expect(bench.discord.acknowledged.get(token)).toBe(5)
    await provider.send(TO, { text: 'dos' }, { inboundId })
    await provider.send(TO, { text: 'tres' })
    expect(
      bench.discord.sent.map(({ route, body }) => [route.replace(/\/[\w-]+secret\w+/, ''), body['content']]),
    ).toEqual([
      [`PATCH /webhooks/290926798999357250/messages/@original`, 'uno'],
      [`POST /webhooks/290926798999357250`, 'dos'],
      [`POST /channels/${CHANNEL}/messages`, 'tres'],
    ])
  })

  it('it is acknowledged although the runtime is slow, within Discord’s 3 s', async () => {
    const { sink } = await bench.open()
    let accept = () => {}
    sink.accept = () => new Promise<void>((resolve) => (accept = resolve))
    const { token } = bench.discord.interact(command)
    await bench.discord.until(({ acknowledged }) => acknowledged.has(token))
    expect(sink.messages).toEqual([])
    accept()
    await sink.until(({ messages }) => messages.length === 1)
  })

  it('a button is acknowledged without a trace, and answered by a message of its own', async () => {
    const { provider, token, inboundId } = await received({
      type: 3,
      data: { component_type: 2, custom_id: 'size:M' },
      message: { id: '9', components: [] },
    })
    await provider.send({ chatId: DM }, { text: 'Talla M' }, { inboundId })
    expect(bench.discord.acknowledged.get(token)).toBe(6)
    expect(last()?.route).toBe(`POST /webhooks/290926798999357250/${token}`)
  })

  it('a long answer, a file and a quote of the command go the same way', async () => {
    const { provider, inboundId } = await received(command)
    await provider.send({ chatId: DM }, { text: 'x '.repeat(1_500).trim(), replyTo: inboundId })
    expect(bench.discord.sent.map(({ route }) => route.split(' ')[0])).toEqual(['PATCH', 'POST'])
    const media = { kind: 'image' as const, data: new Uint8Array(9), fileName: 'a.png' }
    await provider.send({ chatId: DM }, { media }, { inboundId })
    expect(last()).toMatchObject({ files: [{ name: 'a.png', bytes: 9 }] })
    expect(last()?.route).toMatch(/^POST \/webhooks/)
  })

  it('an answer to another chat, one that came too late and one of another replica go to the channel', async () => {
    const { provider, token, inboundId } = await received(command)
    await provider.send({ chatId: CHANNEL }, { text: 'a otro' }, { inboundId })
    bench.discord.expired.add(token)
    await provider.send({ chatId: DM }, { text: 'tarde' }, { inboundId })
    await bench.provider().send({ chatId: DM }, { text: 'de otra' }, { inboundId })
    expect(bench.discord.sent.map(({ route }) => route)).toEqual([
      `POST /channels/${CHANNEL}/messages`,
      `POST /channels/${DM}/messages`,
      `POST /channels/${DM}/messages`,
    ])
  })

  it('one that Discord does not let acknowledge any more is answered in the channel', async () => {
    bench.discord.failNext(/callback$/, {
      kind: 'error',
      status: 404,
      code: 10062,
      message: 'Unknown interaction',
    })
    const { provider, inboundId } = await received(command)
    await provider.send({ chatId: DM }, { text: 'hola' }, { inboundId })
    expect(last()?.route).toBe(`POST /channels/${DM}/messages`)
  })

  it('delivered twice, it is acknowledged once', async () => {
    const { sink, provider } = await bench.open()
    const { id, token } = bench.discord.interact(command)
    bench.discord.gateway.dispatch('INTERACTION_CREATE', {
      ...(sink.messages[0]?.raw as object),
      id,
      token,
      application_id: '290926798999357250',
      type: 2,
      channel_id: DM,
      user: LUCIA,
      ...command,
    })
    await sink.until(({ messages }) => messages.length === 2)
    await provider.send({ chatId: DM }, { text: 'hola' }, { inboundId: `interaction:${id}` })
    expect(bench.discord.requests.filter((route) => route.endsWith('/callback'))).toHaveLength(1)
    expect(new Set(sink.messages.map((message) => message.id)).size).toBe(1)
  })
})

describe('slash commands are registered', () => {
  const commands = [{ name: 'pedido', description: 'Haz un pedido' }]

  it.each([
    [{ commands }, 'PUT /applications/290926798999357250/commands'],
    [{ commands, commandsGuild: GUILD }, `PUT /applications/290926798999357250/guilds/${GUILD}/commands`],
  ])('%p', async (options, route) => {
    const { sink } = await bench.open(options)
    await bench.discord.until(({ requests }) => requests.includes(route))
    expect(bench.discord.commands).toEqual(commands)
    bench.discord.gateway.close(4000)
    await sink.until(({ states }) => states.length === 4)
    expect(bench.discord.requests.filter((one) => one.startsWith('PUT'))).toHaveLength(1)
  })

  it('a refusal is reported, and the bot goes on without', async () => {
    bench.discord.failNext(/commands$/, {
      kind: 'error',
      status: 400,
      code: 50035,
      message: 'Invalid Form Body',
    })
    const { sink } = await bench.open({ commands })
    await sink.until(({ errors }) => errors.length === 1)
    expect(sink.errors).toMatchObject([{ code: 'PROVIDER', details: { reason: 'commands', final: false } }])
    expect(statuses(sink)).toEqual(['connecting', 'open'])
  })

  it('without commands nothing is touched', async () => {
    await bench.open({}, new RecordingSink())
    expect(bench.discord.requests).toEqual(['GET /gateway/bot'])
  })
})
