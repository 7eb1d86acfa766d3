/** Sample updates → neutral messages. */
import { describe, expect, it } from '@jest/globals'
import { chatKeyOf } from '@botmesh/core'
import { parseInbound, type InboundContext, type TelegramEvent } from '@botmesh/telegram'
import { BOT_ID, sample, sampleNames } from './samples.js'

const CONTEXT: InboundContext = { botId: BOT_ID, username: 'tienda_bot', edits: 'ignore' }
const LUCIA = { chatId: '501001', from: '501001', fromName: 'Lucía Ferrer', lang: 'es', isGroup: false }
const GROUP = { chatId: '-1002003004005', isGroup: true }

function parse(name: string, context: Partial<InboundContext> = {}): TelegramEvent {
  return parseInbound(sample(name), { ...CONTEXT, ...context }, 1_767_225_999_000)
}

describe('B4: Telegram messages in neutral form', () => {
  it('text', () => {
    const event = parse('text')
    if (event.kind !== 'message') throw new Error(event.reason)
    const { raw, ...message } = event.message
    expect(raw).toBeDefined()
    expect(message).toEqual({
      ...LUCIA,
      id: '501001:41',
      type: 'text',
      body: 'Hola, quiero hacer un pedido',
      timestamp: 1_767_225_641_000,
    })
  })

  it.each([
    ['text-quoting', { type: 'text', body: 'La azul', quotedId: '501001:12' }],
    ['command', { type: 'command', body: '/cancel ahora' }],
    [
      'photo',
      {
        type: 'media',
        body: '¿Tenéis esta?',
        media: { kind: 'image', id: 'AgACbig', sizeBytes: 152000, caption: '¿Tenéis esta?' },
      },
    ],
    ['document', { body: 'La factura', media: { kind: 'document', fileName: 'factura-0231.pdf' } }],
    ['voice', { body: '', media: { kind: 'audio', mimeType: 'audio/ogg' } }],
    ['audio', { media: { kind: 'audio', fileName: 'tema.mp3' } }],
    ['video', { media: { kind: 'video', id: 'BAACvideo' } }],
    ['video-note', { media: { kind: 'video', id: 'DQACnote' } }],
    ['animation', { media: { kind: 'video', id: 'CgACanim' } }],
    ['sticker', { media: { kind: 'sticker', id: 'CAACsticker' } }],
    ['location', { type: 'location', body: '41.3874,2.1686' }],
    ['venue', { type: 'location', body: 'Plaça de Catalunya\nBarcelona\n41.3874,2.1686' }],
    ['contact', { type: 'contact', body: 'Iker Sanz +34600333444' }],
    ['poll', { type: 'other', body: '¿Azul o verde?' }],
    ['dice', { type: 'other', body: '🎲 4' }],
    [
      'reaction',
      { type: 'reaction', body: '👍', quotedId: '501001:31', id: expect.stringMatching(/^501001:31:r/) },
    ],
    [
      'callback',
      {
        id: 'cb:2151795',
        type: 'button',
        body: 'Talla M',
        buttonId: 'size:M',
        quotedId: '501001:31',
        timestamp: 1_767_225_999_000,
      },
    ],
    ['callback-old-message', { type: 'button', body: 'size:M', buttonId: 'size:M' }],
  ])('%s', (name, expected) => {
    expect(parse(name)).toMatchObject({ kind: 'message', message: { ...LUCIA, ...expected } })
  })

  it.each([
    ['group-text', { ...GROUP, participant: '501002', from: '501002' }],
    ['callback-in-group', { ...GROUP, participant: '501002', buttonId: 'size:S' }],
    ['anonymous-admin', { ...GROUP, participant: '-1002003004005' }],
    ['command-in-group', { ...GROUP, participant: '501001', type: 'command', body: '/cancel' }],
    ['topic-text', { ...GROUP, chatId: '-1002003004005#45', participant: '501002' }],
  ])('groups: %s', (name, expected) => {
    expect(parse(name)).toMatchObject({ kind: 'message', message: expected })
  })

  it('what is said in a topic does not quote the message that opened it', () => {
    expect(parse('topic-text')).not.toHaveProperty('message.quotedId')
  })

  it('B4: two people of one group have chat keys of their own', () => {
    const keys = ['group-text', 'command-in-group'].map((name) => {
      const event = parse(name)
      return event.kind === 'message' ? chatKeyOf({ provider: 'telegram:t', ...event.message }) : ''
    })
    expect(keys).toEqual(['telegram%3At/-1002003004005/501002', 'telegram%3At/-1002003004005/501001'])
  })

  it.each([
    ['command-for-another-bot', 'a command for another bot'],
    ['another-bot', 'written by another bot'],
    ['own-message', 'written by this bot'],
    ['channel-forward', 'forwarded by its channel'],
    ['callback-inline', 'a callback of an inline message or a game'],
    ['service-joined', 'a service message'],
    ['channel-post', 'update type "channel_post"'],
    ['member-change', 'update type "my_chat_member"'],
    ['edited', 'a corrected message'],
  ])('ignores %s: %s', (name, reason) => {
    expect(parse(name)).toEqual({ kind: 'ignored', reason })
  })

  it('corrected messages name what they replace, if asked for', () => {
    expect(parse('edited', { edits: 'deliver' })).toMatchObject({
      kind: 'message',
      message: {
        type: 'text',
        body: 'Talla L, perdón',
        editOf: expect.stringMatching(/^501001:\d+$/),
        timestamp: 1_767_225_900_000,
      },
    })
  })

  it('every message is plain JSON but for raw, and ids are unique', () => {
    const ids = new Set<string>()
    let messages = 0
    for (const name of sampleNames) {
      const event = parse(name, { edits: 'deliver' })
      if (event.kind !== 'message') continue
      messages++
      ids.add(event.message.id)
      const { raw, ...rest } = event.message
      expect(raw).toBeDefined()
      expect(JSON.parse(JSON.stringify(rest))).toEqual(rest)
    }
    expect(messages).toBeGreaterThan(20)
    expect(ids.size).toBe(messages)
  })
})
