/** Sample events → neutral messages; mutated ones → never an exception. */
import { describe, expect, it } from '@jest/globals'
import { chatKeyOf } from '@botmesh/core'
import { SeededRandom } from '@botmesh/core/testing'
import { parseInbound } from '@botmesh/discord'
import { damage } from '../../../test/doubles/discord/damage.js'
import { CONTEXT, only, parse, sample, sampleNames } from './samples.js'

const LUCIA = {
  chatId: '601001000000000001',
  from: '501001000000000001',
  fromName: 'Lucía Ferrer',
  isGroup: false,
  timestamp: 1_767_633_641_000,
}
const GUILD = { chatId: '602001000000000001', isGroup: true }
const THREAD = { chatId: '604001000000000001', isGroup: true }

describe('B4: Discord messages in neutral form', () => {
  it('direct-text', () => {
    const { raw, ...message } = only(parse('direct-text'))
    expect(raw).toEqual(sample('direct-text').d)
    expect(message).toEqual({
      ...LUCIA,
      id: sample('direct-text').d['id'],
      type: 'text',
      body: 'Hola, quiero hacer un pedido',
    })
  })

  it.each<[string, object]>([
    ['reply', { type: 'text', body: 'La azul', quotedId: '1457800000000000001' }],
    [
      'image',
      {
        type: 'media',
        body: '¿Tenéis esta?',
        media: {
          kind: 'image',
          mimeType: 'image/jpeg',
          fileName: 'camiseta.jpg',
          sizeBytes: 152_004,
          caption: '¿Tenéis esta?',
          id: expect.stringMatching(/^\d+$/),
          url: expect.stringMatching(/^https:/),
        },
      },
    ],
    ['document', { body: '', media: { kind: 'document', fileName: 'factura-0231.pdf' } }],
    ['voice', { media: { kind: 'audio', mimeType: 'audio/ogg' } }],
    ['video', { media: { kind: 'video', fileName: 'desfile.mp4' } }],
    ['unknown-file', { media: { kind: 'document', fileName: 'datos' } }],
    ['sticker', { media: { kind: 'sticker', id: '749054660769218631', fileName: 'Wave' } }],
    ['poll', { type: 'other', body: '¿Azul o verde?' }],
    [
      'command',
      { type: 'command', body: '/pedido', lang: 'es-ES', id: expect.stringMatching(/^interaction:\d+$/) },
    ],
    [
      'command-with-file',
      { type: 'command', body: '/foto', media: { kind: 'image', id: '1457900000000000001' } },
    ],
    ['button', { type: 'button', body: 'Talla M', buttonId: 'size:M', quotedId: expect.any(String) }],
    ['button-of-old-message', { type: 'button', body: 'size:L', buttonId: 'size:L' }],
    ['list-choice', { type: 'button', body: 'Talla M', buttonId: 'size:M' }],
  ])('%s', (name, expected) => {
    expect(only(parse(name))).toMatchObject({ ...LUCIA, ...expected })
  })

  it.each<[string, object]>([
    ['guild-text', { ...GUILD, participant: '501002000000000001', fromName: 'Iker (socio)' }],
    ['guild-mention', { ...GUILD, participant: LUCIA.from, body: 'pedido para @iker_sanz' }],
    ['mention-alone', { ...GUILD, type: 'text', body: '' }],
    ['reply-to-bot-in-guild', { ...GUILD, quotedId: '1457800000000000002' }],
    ['thread-text', { ...THREAD, participant: LUCIA.from, body: 'Sigo aquí con lo mío' }],
    [
      'command-with-options',
      { ...GUILD, participant: LUCIA.from, body: '/pedido M 2 false', fromName: 'Lu' },
    ],
    ['subcommand', { ...GUILD, body: '/pedido estado 231' }],
    ['command-in-thread', { ...THREAD, body: '/cancelar' }],
    ['user-command', { ...GUILD, body: '/Saludar 501002000000000001' }],
    ['button-in-guild', { ...GUILD, participant: LUCIA.from, buttonId: 'size:S', body: 'Talla S' }],
  ])('servers and threads: %s', (name, expected) => {
    expect(only(parse(name))).toMatchObject(expected)
  })

  it('a message with two files becomes two, and the words go with the first', () => {
    const event = parse('two-images')
    if (event.kind === 'ignored') throw new Error(event.reason)
    const [first, second] = event.messages
    expect(first).toMatchObject({ body: 'Estas dos', media: { fileName: 'camiseta.jpg' } })
    expect(second).toMatchObject({ body: '', media: { fileName: 'pantalon.png' }, id: `${first?.id}:2` })
  })

  it('two people of one channel have chat keys of their own', () => {
    const keys = ['guild-text', 'guild-mention'].map((name) =>
      chatKeyOf({ provider: 'discord:t', ...only(parse(name)) }),
    )
    expect(keys).toEqual([
      'discord%3At/602001000000000001/501002000000000001',
      'discord%3At/602001000000000001/501001000000000001',
    ])
  })

  it('commands and buttons say how they are acknowledged, and their token stays out of the message', () => {
    for (const name of ['command', 'button']) {
      const event = parse(name)
      if (event.kind === 'ignored') throw new Error(event.reason)
      const { token, kind, messageId } = event.interaction!
      expect([kind, messageId]).toEqual([name === 'command' ? 'command' : 'component', event.messages[0]?.id])
      const { raw: _raw, ...message } = event.messages[0]!
      expect(JSON.stringify(message)).not.toContain(token)
    }
  })

  it.each([
    ['ignored-own', 'written by this bot'],
    ['ignored-other-bot', 'written by another bot'],
    ['ignored-webhook', 'written by a webhook'],
    ['ignored-joined', 'a service message (type 7)'],
    ['ignored-thread-created', 'a service message (type 18)'],
    ['ignored-without-content', 'it has no content (is the Message Content intent on?)'],
    ['ignored-autocomplete', 'interaction type 4'],
    ['ignored-modal', 'interaction type 5'],
    ['ignored-ping', 'an interaction without a user or a channel'],
    ['ignored-edited', 'event "MESSAGE_UPDATE"'],
    ['ignored-typing', 'event "TYPING_START"'],
    ['ignored-guild', 'event "GUILD_CREATE"'],
  ])('%s: %s', (name, reason) => {
    expect(parse(name)).toEqual({ kind: 'ignored', reason })
  })

  it('listen mentions: in servers only what speaks to the bot; direct messages and commands as ever', () => {
    const heard = sampleNames.filter((name) => parse(name, { listen: 'mentions' }).kind === 'messages')
    expect(heard).toContain('guild-mention')
    expect(heard).toContain('reply-to-bot-in-guild')
    expect(heard).toContain('direct-text')
    expect(heard).toContain('subcommand')
    expect(heard).not.toContain('guild-text')
    expect(heard).not.toContain('thread-text')
  })

  it('other bots are heard if asked for, the bot itself never', () => {
    expect(only(parse('ignored-other-bot', { bots: 'deliver' })).body).toBe('bip')
    expect(only(parse('ignored-webhook', { bots: 'deliver' })).body).toBe('Titulares')
    expect(parse('ignored-own', { bots: 'deliver' }).kind).toBe('ignored')
  })

  it('every message is plain JSON but for raw, and ids are unique', () => {
    const ids = new Set<string>()
    let count = 0
    for (const name of sampleNames) {
      const event = parse(name)
      if (event.kind === 'ignored') continue
      for (const { raw, ...message } of event.messages) {
        count += 1
        ids.add(message.id)
        expect(raw).toBeDefined()
        expect(JSON.parse(JSON.stringify(message))).toEqual(message)
      }
    }
    expect(count).toBeGreaterThan(22)
    expect(ids.size).toBe(count)
  })
})

describe('scenario 25 in kind: events that are not as they should be', () => {
  it('5,000 mutated samples: each is a message with an id, a chat and a writer, or ignored; none throws', () => {
    const random = new SeededRandom(20_260_105)
    const draw = (below: number) => Math.floor(random.next() * below)
    let parsed = 0
    for (let round = 0; round < 5_000; round += 1) {
      const { t, d } = sample(sampleNames[round % sampleNames.length] ?? '')
      const event = parseInbound(t, damage(d, draw), CONTEXT)
      if (event.kind === 'ignored') continue
      parsed += 1
      for (const message of event.messages) {
        const { id, chatId, from, timestamp, body } = message
        const sound =
          [id, chatId, from].every((one) => typeof one === 'string' && one !== '') &&
          Number.isFinite(timestamp) &&
          typeof body === 'string'
        if (!sound) throw new Error(`round ${round}: ${JSON.stringify(message)}`)
      }
    }
    expect(parsed).toBeGreaterThan(1_000)
  })

  it.each([[undefined], [null], [0], ['text'], [[]], [{}], [{ id: {} }]])('%p is ignored', (data) => {
    for (const type of ['MESSAGE_CREATE', 'INTERACTION_CREATE', undefined, null, {}]) {
      expect(parseInbound(type, data, CONTEXT).kind).toBe('ignored')
    }
  })
})
