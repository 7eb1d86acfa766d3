/** The pure parts, on sample messages of made-up people, and the queue. */
import { readdirSync, readFileSync } from 'node:fs'
import { BufferJSON, type WAMessage } from '@whiskeysockets/baileys'
import { describe, expect, it } from '@jest/globals'
import { ConfigError, systemClock, type Message } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { BaileysProvider, type BaileysOptions } from '@botmesh/baileys'
import { closePolicy, codeOf } from '../src/close-codes.js'
import { Backlog } from '../src/backlog.js'
import { InboundQueue } from '../src/inbound-queue.js'
import { parseInbound, readMediaId } from '../src/parse-inbound.js'
import { quietSignal } from '../src/quiet-signal.js'
import { RecentMessages } from '../src/recent-messages.js'
import { jidOf, renderOutbound } from '../src/render-outbound.js'

const SAMPLES = new URL('../src/sample-messages/', import.meta.url)
function parse(name: string): Message | null {
  const json = readFileSync(new URL(`${name}.json`, SAMPLES), 'utf8')
  return parseInbound(JSON.parse(json, BufferJSON.reviver) as WAMessage)
}

describe('B4: parsing what WhatsApp Web delivers', () => {
  const ana = {
    id: '3EB0A1B2C3D4E5F60718',
    chatId: '5215550002222@s.whatsapp.net',
    from: '5215550002222@s.whatsapp.net',
    fromName: 'Ana',
    isGroup: false,
    timestamp: 1_718_000_000_000,
    raw: expect.anything(),
  }
  const key = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8'

  it.each<[string, object]>([
    ['text', { type: 'text', body: 'Hola, quiero hacer un pedido' }],
    ['text-hidden-id', { type: 'text', body: 'Hola desde un id oculto' }],
    ['quoted-reply', { type: 'text', body: 'M', quotedId: '3EB0FFEEDDCCBBAA9988' }],
    ['disappearing-text', { type: 'text', body: 'esto desaparece' }],
    [
      'image',
      {
        type: 'media',
        body: '¿Tienen esta?',
        media: {
          kind: 'image',
          mimeType: 'image/jpeg',
          caption: '¿Tienen esta?',
          sizeBytes: 48_213,
          id: `/o1/v/t24/f2/m231/sample?ccb=9-4#${key}`,
        },
      },
    ],
    [
      'voice',
      {
        type: 'media',
        body: '',
        media: {
          kind: 'audio',
          mimeType: 'audio/ogg; codecs=opus',
          sizeBytes: 9120,
          id: `/v/t62.7117-24/sample.enc#${key}`,
        },
      },
    ],
    [
      'document-with-caption',
      {
        type: 'media',
        body: 'mis medidas',
        media: {
          kind: 'document',
          mimeType: 'application/pdf',
          fileName: 'medidas.pdf',
          caption: 'mis medidas',
          sizeBytes: 20_480,
          id: `/v/t62.7119-24/sample.enc#${key}`,
        },
      },
    ],
    ['reaction', { type: 'reaction', body: '👍', quotedId: '3EB0FFEEDDCCBBAA9988' }],
    ['button-reply', { type: 'button', body: 'M', buttonId: 'size-m', quotedId: '3EB0FFEEDDCCBBAA9988' }],
    ['list-reply', { type: 'button', body: 'Té verde', buttonId: 'tea-green' }],
    ['flow-reply', { type: 'button', body: 'Enviar', buttonId: 'ship' }],
    ['location', { type: 'location', body: 'Zócalo (19.4326, -99.1332)' }],
    ['contact', { type: 'contact', body: 'Beto Ejemplo' }],
  ])('%s', (name, expected) => {
    expect(parse(name)).toEqual({ ...ana, ...expected })
  })

  it('group-text: the participant, by phone number where it is known', () => {
    expect(parse('group-text')).toMatchObject({
      chatId: '120363040000000001@g.us',
      from: '5215550003333@s.whatsapp.net',
      participant: '5215550003333@s.whatsapp.net',
      isGroup: true,
      body: '¿a qué hora?',
    })
  })

  const ignored = readdirSync(SAMPLES).filter((name) => name.startsWith('ignored-'))
  it.each(ignored.map((name) => name.replace('.json', '')))('%s', (name) => {
    expect(parse(name)).toBeNull()
  })

  it('never throws on what it does not know', () => {
    for (const message of [
      {},
      { key: {} },
      { key: { remoteJid: 'x' }, message: {} },
      { key: { remoteJid: '1@s.whatsapp.net', id: 'a' }, message: { newThing: { contextInfo: null } } },
      { key: { remoteJid: '1@g.us', id: 'a' }, message: { conversation: 'no participant' } },
      {
        key: { remoteJid: '1@s.whatsapp.net', id: 'a' },
        message: { interactiveResponseMessage: { nativeFlowResponseMessage: { paramsJson: '{' } } },
      },
    ]) {
      expect(parseInbound({ key: {}, ...message })).toBeNull()
    }
  })

  it('reads back the id of a file', () => {
    expect(readMediaId(`/a?b=1#${key}`)).toEqual({ where: '/a?b=1', mediaKey: Buffer.from(key, 'base64url') })
    expect(readMediaId('telegram-file-id')).toBeNull()
  })
})

describe('B4: rendering', () => {
  it('buttons and lists become numbered lines', () => {
    expect(
      renderOutbound('baileys:x', {
        text: '¿Talla?',
        buttons: [
          { id: 's', text: 'S' },
          { id: 'm', text: 'M' },
        ],
      }),
    ).toEqual({
      text: '¿Talla?\n\n1. S\n2. M',
    })
    const list = {
      button: 'Ver',
      sections: [
        { title: 'Té', rows: [{ id: '1', title: 'Verde', description: '$40' }] },
        { title: 'Café', rows: [{ id: '2', title: 'Solo' }] },
      ],
    }
    expect(renderOutbound('baileys:x', { text: 'Carta', list })).toEqual({
      text: 'Carta\n\n*Té*\n1. Verde: $40\n\n*Café*\n2. Solo',
    })
  })

  it('media from a URL or bytes, never from a path', () => {
    const data = new Uint8Array([1, 2])
    expect(renderOutbound('baileys:x', { media: { kind: 'image', data, caption: 'c' }, text: 't' })).toEqual({
      image: Buffer.from(data),
      caption: 'c\n\nt',
    })
    expect(
      renderOutbound('baileys:x', { media: { kind: 'document', url: 'https://a.example/x.pdf' } }),
    ).toEqual({
      document: { url: 'https://a.example/x.pdf' },
      mimetype: 'application/octet-stream',
      fileName: 'document',
    })
    for (const content of [{ media: { kind: 'image' as const, url: '/etc/passwd' } }, { text: '' }, {}]) {
      expect(() => renderOutbound('baileys:x', content)).toThrow(
        expect.objectContaining({ outcome: 'final' }),
      )
    }
  })

  it('a bare number is a phone', () => {
    expect(jidOf('+52 1 555 000 2222')).toBe('5215550002222@s.whatsapp.net')
    expect(jidOf('120363040000000001@g.us')).toBe('120363040000000001@g.us')
  })
})

describe('scenario 19: what a close code means', () => {
  it.each([
    [440, 'replaced', 'stop'],
    [401, 'logged-out', 'stop'],
    [403, 'forbidden', 'stop'],
    [405, 'outdated-version', 'stop'],
    [515, 'restart-required', 'restart'],
    [428, 'connection-closed', 'reconnect'],
    [408, 'timed-out', 'reconnect'],
    [503, 'unavailable', 'reconnect'],
    [599, 'code-599', 'reconnect'],
    [undefined, 'connection-closed', 'reconnect'],
  ])('%s', (code, reason, next) => {
    expect(closePolicy(code)).toMatchObject({ reason, next })
  })

  it('reads the code of a Boom, and of nothing else', () => {
    expect([codeOf({ output: { statusCode: 440 } }), codeOf(new Error('x')), codeOf(undefined)]).toEqual([
      440,
      undefined,
      undefined,
    ])
  })
})

describe('the inbound queue', () => {
  const message = (id: string, chatId: string): Message => ({
    id,
    chatId,
    from: chatId,
    type: 'text',
    body: id,
    isGroup: false,
    timestamp: 0,
  })
  const fast = { ...systemClock, setTimeout: (fn: () => void) => systemClock.setTimeout(fn, 1) }

  it('tries a refused message again before later ones of its chat; other chats go on', async () => {
    const sink = new RecordingSink({ clock: fast })
    let refusals = 3
    sink.accept = async ({ id }) => {
      if (id === 'a1' && refusals-- > 0) throw new Error('no turn')
    }
    const queue = new InboundQueue('baileys:x', sink)
    for (const [id, chat] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
    ] as const)
      void queue.push(message(id, chat))
    await sink.until((one) => one.messages.length === 3)
    expect(sink.bodies).toEqual(['b1', 'a1', 'a2'])
    expect(sink.errors).toEqual([])
    await queue.close()
  })

  it('says which messages stay refused, and which a stop leaves behind', async () => {
    const sink = new RecordingSink({ clock: fast })
    sink.accept = async () => Promise.reject(new Error('no turn'))
    const queue = new InboundQueue('baileys:x', sink)
    expect(await queue.push(message('a1', 'a'))).toBe(false)
    expect(sink.errors).toEqual([
      expect.objectContaining({ details: expect.objectContaining({ reason: 'message-not-accepted' }) }),
    ])
    const slow = new InboundQueue('baileys:x', new RecordingSink())
    const taken = slow.push(message('b1', 'b'))
    await slow.close()
    expect(await taken).toBe(true)
    const stuck = new RecordingSink()
    stuck.accept = sink.accept
    const stopped = new InboundQueue('baileys:x', stuck)
    const left = stopped.push(message('c1', 'c'))
    await stopped.close()
    expect({ accepted: await left, errors: stuck.errors }).toEqual({ accepted: false, errors: [] })
  })
})

describe('the backlog', () => {
  it('scenario 14: is full by number or by size, and forgets what is done with', () => {
    const backlog = new Backlog({ messages: 2, bytes: 100 })
    const items = [{}, {}, {}]
    for (const item of items) backlog.add(item, 10)
    backlog.add(items[0]!, 10)
    expect([backlog.messages, backlog.bytes, backlog.isFull]).toEqual([3, 30, true])
    backlog.remove(items[0]!)
    backlog.remove(items[0]!)
    expect([backlog.messages, backlog.bytes, backlog.isFull]).toEqual([2, 20, false])
    backlog.remove(items[1]!)
    backlog.add({}, 95)
    expect([backlog.messages, backlog.bytes, backlog.isFull]).toEqual([2, 105, true])
  })
})

describe('parts', () => {
  it('remembers the last messages only', () => {
    const recent = new RecentMessages<number>(2)
    for (const n of [1, 2, 1, 3]) recent.add(String(n), n)
    expect([recent.get('1'), recent.get('2'), recent.get('3')]).toEqual([1, undefined, 3])
  })

  it('keeps the Signal library’s sessions, and nothing else, off the console', () => {
    const printed: unknown[][] = []
    const target = {
      info: (...args: unknown[]) => printed.push(args),
      warn: (...args: unknown[]) => printed.push(args),
    }
    quietSignal(target)
    quietSignal(target)
    target.info('Closing session:', { privKey: 'secret' })
    target.warn('Session already closed', { privKey: 'secret' })
    target.info('hello', 1)
    target.warn('Closing session: the shop shuts')
    expect(printed).toEqual([['hello', 1], ['Closing session: the shop shuts']])
  })

  it.each<[string, object, string]>([
    ['an unknown option', { session: 'x', sesion: 'y' }, 'did you mean "session"'],
    ['no session', {}, '"session"'],
    ['a session that leaves the folder', { session: '../x' }, '"session"'],
    ['a session of dots', { session: '..' }, '"session"'],
    ['an impossible duration', { session: 'x', offlineMaxAge: 'soon' }, '"offlineMaxAge"'],
    ['a phone with a plus', { session: 'x', pairingPhone: '+521' }, '"pairingPhone"'],
    ['an address that is no WebSocket', { session: 'x', waWebSocketUrl: 'http://x' }, '"waWebSocketUrl"'],
    ['auth of one’s own', { session: 'x', socketOptions: { auth: {} } }, '"socketOptions.auth"'],
    ['an empty backlog', { session: 'x', backlog: { bytes: 0 } }, '"backlog.bytes"'],
    ['an unknown choice', { session: 'x', afterLogout: 'cry' }, '"afterLogout"'],
  ])('%s is a ConfigError that names it', (_name, options, text) => {
    const make = () => new BaileysProvider(options as BaileysOptions)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(text)
  })
})
