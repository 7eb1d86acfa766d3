/** Samples of Messenger and Instagram through parse and back, and what both render in the same way (B4). */
import { describe, expect, it } from '@jest/globals'
import { SendError, type Message, type OutgoingContent, type SendTarget } from '@botmesh/core'
import type { PageEvent } from '@botmesh/meta/page'
import { pageWebhookBody } from '../../doubles/graph-api.js'
import { refusalOf } from '../../doubles/page-rules.js'
import type { PageFixture } from './fixture.js'

/** The package's two pure functions. */
export interface PageFunctions {
  parse: (body: unknown, options?: { edits?: 'ignore' | 'deliver' }) => PageEvent[]
  render: (
    to: SendTarget,
    content: OutgoingContent,
    options?: { longText?: 'split' | 'refuse' },
  ) => Record<string, unknown>[]
}

interface Tappable {
  title: string
  payload: string
}
interface Sent {
  text?: string
  quick_replies?: Tappable[]
  attachment?: { payload: { buttons?: Tappable[]; elements?: { buttons?: Tappable[] }[] } }
}

export function pageSamplesSuite(fixture: PageFixture, { parse, render }: PageFunctions): void {
  const { samples, accountId, object } = fixture
  const [user] = fixture.users
  const to = { chatId: user }
  const messagesOf = (body: unknown) =>
    parse(body, { edits: 'deliver' }).flatMap((event) => (event.kind === 'message' ? [event.message] : []))
  const messages = (content: OutgoingContent) => render(to, content).map((body) => body['message'] as Sent)
  const choices = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ id: `b${index}`, text: `Opción ${index}` }))

  describe(`${fixture.name}: samples through parse and back`, () => {
    it.each(samples.names)(
      '%s: what it says is plain JSON, and can be said back within the limits',
      (name) => {
        for (const { raw, ...message } of messagesOf(samples.json(name))) {
          expect(raw).toBeDefined()
          expect(JSON.parse(JSON.stringify(message))).toEqual(message)
          expect(message.timestamp).toBeGreaterThan(1_767_225_600_000)
          const content = contentOf(message)
          if (content === undefined) continue
          for (const body of render({ chatId: message.chatId }, content)) {
            expect(body['recipient']).toEqual({ id: message.from })
            expect(refusalOf(body, fixture.rules)).toBeUndefined()
          }
        }
      },
    )

    it('one malformed event does not cost its neighbours', () => {
      const body = samples.json('several') as { entry: { messaging: unknown[] }[] }
      body.entry[0]!.messaging[0] = { sender: { id: 7 }, message: {} }
      expect(parse(body).map((event) => event.kind)).toEqual([
        'ignored',
        'message',
        'ignored',
        'ignored',
        'message',
        'receipt',
        'message',
      ])
    })

    it.each([1, 3, 4, 13])('the answer to %d rendered buttons parses back to its id and text', (count) => {
      const [sent] = messages({ text: '¿Cuál?', buttons: choices(count) })
      const tapped = count <= 3 ? sent!.attachment!.payload.buttons! : sent!.quick_replies!
      expect(tapped).toHaveLength(count)
      const { title, payload } = tapped.at(-1)!
      const head = { sender: { id: user }, recipient: { id: accountId }, timestamp: 1_767_225_700_000 }
      const answer =
        count <= 3
          ? { ...head, postback: { mid: 'm_A', title, payload } }
          : { ...head, message: { mid: 'm_A', text: title, quick_reply: { payload } } }
      expect(messagesOf(JSON.parse(pageWebhookBody(object, accountId, [answer])))).toEqual([
        expect.objectContaining({ type: 'button', body: title, buttonId: `b${count - 1}`, id: 'm_A' }),
      ])
    })
  })

  describe(`${fixture.name}: B4: neutral content in the platform’s form`, () => {
    it('text, quoting, and the fields that only this platform has', () => {
      expect(
        render(to, { text: 'Hola', replyTo: 'm_1', platform: { tag: 'HUMAN_AGENT', metadata: 'x' } }),
      ).toEqual([
        {
          recipient: { id: user },
          messaging_type: 'MESSAGE_TAG',
          tag: 'HUMAN_AGENT',
          reply_to: { mid: 'm_1' },
          message: { text: 'Hola', metadata: 'x' },
        },
      ])
      const attachment = { type: 'template', payload: { template_type: 'generic', elements: [] } }
      expect(messages({ text: 'Mira', platform: { attachment } })).toEqual([{ text: 'Mira' }, { attachment }])
      expect(() => render(to, { text: 'x', platform: { atachment: {} } })).toThrow(/platform\.atachment/)
    })

    it('fourteen buttons and more are numbered lines; titles are cut, ids are not', () => {
      expect(messages({ text: '¿Cuál?', buttons: choices(14) })).toEqual([
        { text: expect.stringMatching(/^¿Cuál\?\n1\. Opción 0\n[^]*\n14\. Opción 13$/) },
      ])
      const long = [{ id: 'delivery', text: 'Entrega a domicilio mañana 🚚' }]
      expect(messages({ text: '?', buttons: long })[0]!.attachment!.payload.buttons).toEqual([
        { type: 'postback', title: 'Entrega a domicilio…', payload: 'delivery' },
      ])
    })

    it('buttons under a long text are quick replies, under the last part of a longer one too', () => {
      const text = 'palabra '.repeat(100).trim()
      expect(messages({ text, buttons: choices(2) })).toEqual([
        {
          text,
          quick_replies: [
            expect.objectContaining({ payload: 'b0' }),
            expect.objectContaining({ payload: 'b1' }),
          ],
        },
      ])
      const parts = messages({ text: 'palabra '.repeat(400), buttons: choices(2) })
      expect(parts.map((part) => part.quick_replies?.length)).toEqual([
        ...parts.slice(1).map(() => undefined),
        2,
      ])
    })

    it('rows of a list are choices too; their descriptions stand in the text', () => {
      const rows = [
        { id: 's', title: 'S' },
        { id: 'm', title: 'M', description: 'la habitual' },
      ]
      expect(messages({ text: 'Talla', list: { button: 'Ver', sections: [{ rows }] } })[0]).toMatchObject({
        attachment: {
          payload: { text: 'Talla\n1. S\n2. M - la habitual', buttons: [{ payload: 's' }, { payload: 'm' }] },
        },
      })
    })

    it('a picture by its link over buttons is a card; other media go ahead of their words', () => {
      const url = 'https://shop.example/a.jpg'
      expect(messages({ text: '¿Esta?', media: { kind: 'image', url }, buttons: choices(2) })).toEqual([
        {
          attachment: {
            type: 'template',
            payload: {
              template_type: 'generic',
              elements: [
                { title: '¿Esta?', image_url: url, buttons: [expect.anything(), expect.anything()] },
              ],
            },
          },
        },
      ])
      expect(
        messages({
          text: 'y di',
          media: { kind: 'document', id: '77', caption: 'Lee' },
          buttons: choices(5),
        }),
      ).toMatchObject([
        { attachment: { type: 'file', payload: { attachment_id: '77' } } },
        { text: 'Lee' },
        { text: 'y di', quick_replies: { length: 5 } },
      ])
    })

    it('a long text is split at words within the limit, or refused if so wished', () => {
      const text = `${'ñ'.repeat(2500)} ${'añejo 🦩 '.repeat(200)}`.trim()
      const parts = messages({ text }).map((part) => part.text!)
      expect(parts.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''))
      expect(parts.every((part) => !/[\uD800-\uDBFF]$|^\s|\s$/.test(part))).toBe(true)
      for (const body of render(to, { text })) expect(refusalOf(body, fixture.rules)).toBeUndefined()
      expect(() => render(to, { text }, { longText: 'refuse' })).toThrow(/takes (2000|1000): shorten it/)
    })

    it.each<[OutgoingContent, RegExp]>([
      [{}, /empty/],
      [{ text: '' }, /empty/],
      [{ platform: { metadata: 'x' } }, /no text/],
      [{ media: { kind: 'image' } }, /no content/],
      [{ template: { name: 'pedido', language: 'es' } }, /no templates/],
    ])('content that cannot be said is final: %j', (content, message) => {
      expect(() => render(to, content)).toThrow(SendError)
      expect(() => render(to, content)).toThrow(message)
      expect(() => render(to, content)).toThrow(expect.objectContaining({ outcome: 'final' }))
    })
  })
}

/** An echo of what a user said. */
function contentOf(message: Message): OutgoingContent | undefined {
  const { media, body, id } = message
  if (media !== undefined) return { media, replyTo: id }
  return body === '' ? undefined : { text: body, replyTo: id, buttons: [{ id: 'ok', text: 'Vale' }] }
}
