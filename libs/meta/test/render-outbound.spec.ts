/** Neutral content → Cloud API bodies, and back where an answer comes back. */
import { describe, expect, it } from '@jest/globals'
import { SendError } from '@botmesh/core'
import { parseInbound, renderMessages, renderOutbound, renderReadMark } from '@botmesh/meta'
import { metaWebhookBody } from '../../../test/doubles/graph-api.js'
import { PHONE_NUMBER_ID, sample, sampleNames } from './samples.js'

const TO = { chatId: '34600111222' }
const HEAD = { messaging_product: 'whatsapp', recipient_type: 'individual', to: '34600111222' }
const render = (content: Parameters<typeof renderOutbound>[2]) => renderOutbound('meta:shop', TO, content)

describe('B4: neutral content as the Cloud API wants it', () => {
  it('text, with the quoted message and the send key', () => {
    expect(
      renderOutbound('meta:shop', TO, { text: 'Hola', replyTo: 'wamid.1' }, { sendKey: 'rec/step/1/0' }),
    ).toEqual({
      ...HEAD,
      context: { message_id: 'wamid.1' },
      biz_opaque_callback_data: 'rec/step/1/0',
      type: 'text',
      text: { body: 'Hola', preview_url: false },
    })
  })

  it('media by link or id; captions where the platform has them', () => {
    expect(render({ media: { kind: 'image', url: 'https://shop.example/a.jpg', caption: 'Azul' } })).toEqual({
      ...HEAD,
      type: 'image',
      image: { link: 'https://shop.example/a.jpg', caption: 'Azul' },
    })
    expect(render({ media: { kind: 'audio', id: '77', caption: 'x' } })).toMatchObject({
      audio: { id: '77' },
    })
    expect(render({ media: { kind: 'document', id: '78', fileName: 'a.pdf' } })).toMatchObject({
      document: { id: '78', filename: 'a.pdf' },
    })
  })

  it('up to three buttons; from four on a list; from eleven on numbered lines', () => {
    const buttons = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ id: `b${index}`, text: `Opción ${index}` }))
    expect(render({ text: '¿Cuál?', buttons: buttons(3) })).toMatchObject({
      type: 'interactive',
      interactive: { type: 'button', body: { text: '¿Cuál?' }, action: { buttons: { length: 3 } } },
    })
    expect(render({ text: '¿Cuál?', buttons: buttons(4) })).toMatchObject({
      interactive: { type: 'list', action: { sections: [{ rows: { length: 4 } }] } },
    })
    expect(render({ text: '¿Cuál?', buttons: buttons(11) })).toMatchObject({
      type: 'text',
      text: { body: expect.stringMatching(/^¿Cuál\?\n1\. Opción 0\n[^]*\n11\. Opción 10$/) },
    })
  })

  it('titles are cut to what the platform takes, ids are not', () => {
    expect(
      render({ text: '?', buttons: [{ id: 'delivery', text: 'Entrega a domicilio mañana' }] }),
    ).toMatchObject({
      interactive: { action: { buttons: [{ reply: { id: 'delivery', title: 'Entrega a domicilio…' } }] } },
    })
  })

  it('a picture over buttons becomes their header', () => {
    expect(
      render({ text: '¿Esta?', buttons: [{ id: 'y', text: 'Sí' }], media: { kind: 'image', id: '5' } }),
    ).toMatchObject({ interactive: { header: { type: 'image', image: { id: '5' } } } })
  })

  it('lists with sections and descriptions', () => {
    const list = {
      button: 'Ver tallas',
      sections: [
        { title: 'Niño', rows: [{ id: 's', title: 'S' }] },
        { rows: [{ id: 'm', title: 'M', description: 'la habitual' }] },
      ],
    }
    expect(render({ text: 'Talla', list })).toMatchObject({
      interactive: {
        type: 'list',
        action: {
          button: 'Ver tallas',
          sections: [
            { title: 'Niño', rows: [{ id: 's', title: 'S' }] },
            { title: '—', rows: [{ id: 'm', title: 'M', description: 'la habitual' }] },
          ],
        },
      },
    })
  })

  it('templates: variables, or the platform’s own components', () => {
    expect(render({ template: { name: 'pedido', language: 'es', variables: ['Lucía', '77'] } })).toEqual({
      ...HEAD,
      type: 'template',
      template: {
        name: 'pedido',
        language: { code: 'es' },
        components: [
          {
            type: 'body',
            parameters: [
              { type: 'text', text: 'Lucía' },
              { type: 'text', text: '77' },
            ],
          },
        ],
      },
    })
    expect(render({ template: { name: 'hola', language: 'es' } })['template']).toEqual({
      name: 'hola',
      language: { code: 'es' },
    })
  })

  it('read marks and typing', () => {
    expect(renderReadMark('wamid.1', false)).toEqual({
      messaging_product: 'whatsapp',
      status: 'read',
      message_id: 'wamid.1',
    })
    expect(renderReadMark('wamid.1', true)).toMatchObject({ typing_indicator: { type: 'text' } })
  })

  it.each([{}, { text: '' }, { media: { kind: 'image' as const } }])(
    'content that says nothing is final: %j',
    (content) => {
      expect(() => render(content)).toThrow(SendError)
      expect(() => render(content)).toThrow(expect.objectContaining({ outcome: 'final' }))
    },
  )

  it('the answer to rendered buttons and rows parses back to their id and text', () => {
    const body = render({ text: '¿Talla?', buttons: [{ id: 'size:M', text: 'Talla M' }] }) as {
      interactive: { action: { buttons: { reply: { id: string; title: string } }[] } }
    }
    const { reply } = body.interactive.action.buttons[0]!
    const answer = {
      from: '34600111222',
      id: 'wamid.A',
      timestamp: '1767225600',
      type: 'interactive',
      interactive: { type: 'button_reply', button_reply: reply },
    }
    const [event] = parseInbound(JSON.parse(metaWebhookBody(PHONE_NUMBER_ID, [answer])), PHONE_NUMBER_ID)
    expect(event).toMatchObject({ message: { type: 'button', body: 'Talla M', buttonId: 'size:M' } })
  })

  it('what a sample says can be said back: every text and media renders again', () => {
    let echoed = 0
    for (const name of sampleNames) {
      for (const event of parseInbound(sample(name), PHONE_NUMBER_ID)) {
        if (event.kind !== 'message') continue
        const { message } = event
        if (message.media === undefined && message.body === '') continue
        const content = message.media === undefined ? { text: message.body } : { media: message.media }
        const body = renderOutbound(
          'meta:shop',
          { chatId: message.chatId },
          { ...content, replyTo: message.id },
        )
        const place = message.chatId.startsWith('ES.') ? 'recipient' : 'to'
        expect(body).toMatchObject({ [place]: message.chatId, context: { message_id: message.id } })
        expect(body['recipient_type']).toBe(message.isGroup ? 'group' : 'individual')
        echoed++
      }
    }
    expect(echoed).toBeGreaterThan(15)
  })
})

describe('B4: what does not fit into one message of the platform', () => {
  const parts = (content: Parameters<typeof renderMessages>[2]) =>
    renderMessages('meta:shop', TO, content, { sendKey: 'rec/step/1/0' })
  const media = { kind: 'image' as const, id: '5', caption: 'Azul' }

  it('a long text is several, with send keys of their own; the first one quotes', () => {
    const text = 'añejo ñandú 🦩 '.repeat(400).trim()
    const bodies = parts({ text, replyTo: 'wamid.1' })
    const texts = bodies.map((body) => (body['text'] as { body: string }).body)
    expect(texts.length).toBeGreaterThan(1)
    expect(texts.every((one) => one.length <= 4096)).toBe(true)
    expect(texts.join(' ')).toBe(text)
    expect(bodies.map((body) => body['context'])).toEqual([{ message_id: 'wamid.1' }, undefined])
    expect(bodies.map((body) => body['biz_opaque_callback_data'])).toEqual(['rec/step/1/0', 'rec/step/1/0#2'])
  })

  it('words that a media cannot carry follow it', () => {
    const sound = { kind: 'audio' as const, id: '6' }
    expect(parts({ media: sound, text: 'Escucha' })).toMatchObject([
      { audio: { id: '6' } },
      { text: { body: 'Escucha' } },
    ])
    expect(parts({ media, text: 'y di' })).toMatchObject([
      { image: { caption: 'Azul' } },
      { text: { body: 'y di' } },
    ])
    const long = 'x'.repeat(1025)
    expect(parts({ media: { ...media, caption: long } })).toMatchObject([
      { image: { id: '5' } },
      { text: { body: long } },
    ])
    expect(parts({ media, text: '¿Esta?', buttons: [{ id: 'y', text: 'Sí' }] })).toHaveLength(1)
    const rows = [{ id: 'm', title: 'M' }]
    expect(parts({ media, list: { button: 'Ver', sections: [{ rows }] } })).toMatchObject([
      { image: { id: '5' } },
      { interactive: { type: 'list', body: { text: 'Azul' } } },
    ])
  })

  it('all else is the one body of renderOutbound', () => {
    for (const content of [{ text: 'Hola' }, { media }, { template: { name: 'a', language: 'es' }, media }]) {
      expect(renderMessages('meta:shop', TO, content)).toEqual([render(content)])
    }
  })
})
