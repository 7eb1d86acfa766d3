/** Neutral messages → what Discord is sent; and each sample there and back. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SendError, type Message, type OutgoingContent } from '@botmesh/core'
import { renderOutbound, type RenderedMessage } from '@botmesh/discord'
import { Bench } from './support/bench.js'
import { parse, sample, sampleNames } from './samples.js'

const LIMITS = { longText: 'split', maxFileBytes: 1_000 } as const

function render(
  content: OutgoingContent,
  limits: Partial<{ longText: 'split' | 'refuse' }> = {},
): RenderedMessage[] {
  return renderOutbound('discord:tienda', content, { ...LIMITS, ...limits })
}
const body = (content: OutgoingContent) => render(content)[0]?.body

describe('B4: neutral messages on Discord', () => {
  it('text pings nobody but the people it names', () => {
    expect(render({ text: '@everyone hola' })).toEqual([
      {
        body: { content: '@everyone hola', allowed_mentions: { parse: ['users'], replied_user: true } },
        files: [],
      },
    ])
  })

  it('a list becomes a menu', () => {
    const rows = [
      { id: 's', title: 'Talla S' },
      { id: 'm', title: 'Talla M', description: 'la más pedida' },
    ]
    expect(body({ text: '¿Talla?', list: { button: 'Tallas', sections: [{ rows }] } })).toMatchObject({
      components: [
        {
          type: 1,
          components: [
            {
              type: 3,
              placeholder: 'Tallas',
              options: [
                { value: 's', label: 'Talla S' },
                { value: 'm', label: 'Talla M', description: 'la más pedida' },
              ],
            },
          ],
        },
      ],
    })
  })

  it('buttons stand in rows of five, long labels are cut', () => {
    const buttons = Array.from({ length: 12 }, (_, n) => ({ id: `b${n}`, text: 'x'.repeat(90) }))
    const rows = body({ text: 'elige', buttons })?.['components'] as { components: { label: string }[] }[]
    expect(rows.map((row) => row.components.length)).toEqual([5, 5, 2])
    expect(rows[0]?.components[0]?.label).toHaveLength(80)
  })

  it.each<[string, OutgoingContent, object]>([
    [
      'an image by url in an embed',
      { media: { kind: 'image', url: 'https://example.com/a.png', caption: 'Mira' } },
      { content: 'Mira', embeds: [{ image: { url: 'https://example.com/a.png' } }] },
    ],
    [
      'other media by url as a link',
      { media: { kind: 'video', url: 'https://example.com/a.mp4', caption: 'Mira' } },
      { content: 'Mira\nhttps://example.com/a.mp4' },
    ],
    [
      'embeds of Discord’s own form',
      { platform: { embeds: [{ title: 'Pedido 231', color: 0x00ff00 }] } },
      { embeds: [{ title: 'Pedido 231' }] },
    ],
    [
      'allowed mentions, if the application says so',
      { text: '@everyone', platform: { allowed_mentions: { parse: ['everyone'] } } },
      { allowed_mentions: { parse: ['everyone'] } },
    ],
    [
      'a quote of the second file of a message quotes the message',
      { text: 'ya', replyTo: '77:2' },
      { message_reference: { message_id: '77' } },
    ],
  ])('%s', (_name, content, expected) => {
    expect(body(content)).toMatchObject(expected)
  })

  it('a command cannot be quoted', () => {
    expect(body({ text: 'ya', replyTo: 'interaction:77' })).not.toHaveProperty('message_reference')
  })

  it.each([
    ['image/jpeg', 'image.jpg'],
    ['image/png', 'image.png'],
    [undefined, 'image.png'],
  ])('a file without a name gets one that Discord shows rightly: %p', (mimeType, name) => {
    const media = {
      kind: 'image' as const,
      data: new Uint8Array(3),
      ...(mimeType === undefined ? {} : { mimeType }),
    }
    expect(render({ media })[0]?.files[0]?.name).toBe(name)
  })

  it('long texts break at lines and words, and never inside a character', () => {
    for (const text of [
      'línea de texto\n'.repeat(400).trim(),
      'palabra '.repeat(900).trim(),
      '👍'.repeat(2_500),
    ]) {
      const parts = render({ text }).map((one) => String(one.body['content']))
      expect(parts.every((part) => part.length <= 2_000 && Buffer.from(part).toString() === part)).toBe(true)
      expect(parts.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''))
    }
    expect(render({ text: 'x'.repeat(2_000) })).toHaveLength(1)
  })

  it.each<[string, OutgoingContent, string]>([
    ['nothing', {}, 'is empty'],
    ['only buttons', { buttons: [{ id: 'a', text: 'A' }] }, 'is empty'],
    ['a template', { template: { name: 'hola', language: 'es' } }, 'no templates'],
    [
      'too many buttons',
      { text: 'x', buttons: Array.from({ length: 26 }, (_, n) => ({ id: `${n}`, text: 'x' })) },
      '25',
    ],
    [
      'a button id that is too long',
      { text: 'x', buttons: [{ id: 'a'.repeat(101), text: 'x' }] },
      '1 to 100',
    ],
    ['a list without rows', { text: 'x', list: { button: 'b', sections: [] } }, '1 to 25'],
    ['media without content', { media: { kind: 'image' } }, 'data or a url'],
    ['media by id', { media: { kind: 'image', id: '7' } }, 'by their id'],
    ['a file over the limit', { media: { kind: 'image', data: new Uint8Array(1_001) } }, '1001 bytes'],
    ['a field that is not Discord’s', { text: 'x', platform: { webhook: 1 } }, 'platform.webhook'],
  ])('refuses %s, and says what to do', (_name, content, says) => {
    let error: unknown
    try {
      render(content)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toBeInstanceOf(SendError)
    expect(error).toMatchObject({ outcome: 'final', message: expect.stringContaining(says) })
  })

  it('refuses a long text where it was asked to', () => {
    expect(() => render({ text: 'x'.repeat(2_001) }, { longText: 'refuse' })).toThrow('2001 characters')
  })
})

describe('each sample, over the wire and back', () => {
  let bench: Bench
  beforeEach(async () => {
    bench = await Bench.start()
  })
  afterEach(() => bench.stop())

  /** What a bot would say that repeats what it was told. */
  function echo(message: Message): OutgoingContent {
    return {
      text: message.body === '' ? `(${message.media?.kind ?? message.type})` : message.body,
      ...(message.buttons === undefined ? {} : { buttons: message.buttons }),
      replyTo: message.id,
    }
  }

  it('is delivered, and what is said about it goes to its channel or its interaction', async () => {
    const { provider, sink } = await bench.open()
    for (const name of sampleNames) {
      const { t, d } = sample(name)
      const expected = parse(name)
      const before = [sink.messages.length, bench.discord.sent.length] as const
      bench.discord.gateway.dispatch(t, d)
      if (expected.kind === 'ignored') continue
      await sink.until(({ messages }) => messages.length === before[0] + expected.messages.length)
      expect(sink.messages.slice(before[0])).toEqual(expected.messages)
      for (const message of sink.messages.slice(before[0])) {
        await provider.send({ chatId: message.chatId }, echo(message), { inboundId: message.id })
        const { route, body: written } = bench.discord.sent.at(-1)!
        expect(written['content']).toBe(echo(message).text)
        if (expected.interaction === undefined) {
          expect(route).toBe(`POST /channels/${message.chatId}/messages`)
          expect(written['message_reference']).toMatchObject({ message_id: message.id.split(':')[0] })
        }
      }
    }
    expect(sink.errors).toEqual([])
    expect(sink.messages.length).toBeGreaterThan(22)
  })
})
