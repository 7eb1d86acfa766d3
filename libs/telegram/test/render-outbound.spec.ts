/** Neutral content → Bot API calls, and back where an answer comes back. */
import { describe, expect, it } from '@jest/globals'
import { SendError } from '@botmesh/core'
import { parseInbound, renderEdit, renderOutbound, renderTyping } from '@botmesh/telegram'
import { InputFile } from 'grammy'
import { BOT_ID, sample, sampleNames } from './samples.js'

const render = (content: Parameters<typeof renderOutbound>[2], chatId = '501001') =>
  renderOutbound('telegram:t', { chatId }, content)

describe('B4: neutral content as the Bot API wants it', () => {
  it('text, quoting, topics and names', () => {
    expect(render({ text: 'Hola', replyTo: '501001:12' })).toEqual({
      method: 'sendMessage',
      payload: {
        chat_id: 501001,
        text: 'Hola',
        reply_parameters: { message_id: 12, allow_sending_without_reply: true },
      },
    })
    expect(render({ text: 'x' }, '-1002003004005#45').payload).toMatchObject({
      chat_id: -1002003004005,
      message_thread_id: 45,
    })
    expect(render({ text: 'x' }, '@tienda').payload['chat_id']).toBe('@tienda')
    expect(render({ text: 'x', replyTo: 'cb:77' }).payload).not.toHaveProperty('reply_parameters')
  })

  it.each([
    ['image', undefined, 'sendPhoto', 'photo'],
    ['video', undefined, 'sendVideo', 'video'],
    ['audio', 'audio/mpeg', 'sendAudio', 'audio'],
    ['audio', 'audio/ogg; codecs=opus', 'sendVoice', 'voice'],
    ['document', undefined, 'sendDocument', 'document'],
    ['sticker', undefined, 'sendSticker', 'sticker'],
  ] as const)('media: %s %s is %s', (kind, mimeType, method, field) => {
    const media = { kind, url: 'https://shop.example/f', caption: 'Azul', ...(mimeType && { mimeType }) }
    expect(render({ media })).toEqual({
      method,
      payload: { chat_id: 501001, [field]: media.url, ...(kind === 'sticker' ? {} : { caption: 'Azul' }) },
    })
  })

  it('bytes become a file to upload', () => {
    const { payload } = render({ media: { kind: 'document', data: new Uint8Array(3), fileName: 'a.pdf' } })
    expect(payload['document']).toBeInstanceOf(InputFile)
    expect((payload['document'] as InputFile).filename).toBe('a.pdf')
  })

  it('buttons become an inline keyboard: short ones side by side, long ones below each other', () => {
    const keyboard = (texts: string[]) =>
      render({ text: '?', buttons: texts.map((text, index) => ({ id: `b${index}`, text })) }).payload[
        'reply_markup'
      ]
    expect(keyboard(['S', 'M', 'L', 'XL'])).toEqual({
      inline_keyboard: [
        [
          { text: 'S', callback_data: 'b0' },
          { text: 'M', callback_data: 'b1' },
          { text: 'L', callback_data: 'b2' },
        ],
        [{ text: 'XL', callback_data: 'b3' }],
      ],
    })
    expect(keyboard(['Entrega a domicilio', 'Recoger'])).toMatchObject({ inline_keyboard: { length: 2 } })
  })

  it('lists become one key a row; media may carry keys too', () => {
    const list = {
      button: 'Ver',
      sections: [
        {
          rows: [
            { id: 's', title: 'S' },
            { id: 'm', title: 'M' },
          ],
        },
      ],
    }
    expect(render({ text: 'Talla', list }).payload['reply_markup']).toMatchObject({
      inline_keyboard: { length: 2 },
    })
    expect(
      render({ media: { kind: 'image', id: 'A' }, text: '¿Esta?', buttons: [{ id: 'y', text: 'Sí' }] }),
    ).toMatchObject({ method: 'sendPhoto', payload: { caption: '¿Esta?', reply_markup: {} } })
  })

  it.each([
    {},
    { text: '' },
    { media: { kind: 'image' as const } },
    { text: '?', buttons: [{ id: 'x'.repeat(65), text: 'long' }] },
    { template: { name: 'hola', language: 'es' } },
  ])('content that cannot be sent is final: %j', (content) => {
    expect(() => render(content)).toThrow(SendError)
    expect(() => render(content)).toThrow(expect.objectContaining({ outcome: 'final' }))
  })

  it('edits and typing', () => {
    expect(renderEdit('telegram:t', '501001:31', { text: 'Talla M ✔' })).toEqual({
      method: 'editMessageText',
      payload: { chat_id: 501001, message_id: 31, text: 'Talla M ✔' },
    })
    expect(() => renderEdit('telegram:t', 'cb:1', { text: 'x' })).toThrow(SendError)
    expect(renderTyping({ chatId: '-100#4' })).toEqual({
      method: 'sendChatAction',
      payload: { chat_id: -100, message_thread_id: 4, action: 'typing' },
    })
  })

  it('what a sample says can be said back: same chat, same topic, quoting it', () => {
    let echoed = 0
    for (const name of sampleNames) {
      const event = parseInbound(sample(name), { botId: BOT_ID, edits: 'deliver' })
      if (event.kind !== 'message') continue
      const { message } = event
      if (message.media === undefined && message.body === '') continue
      const content = message.media === undefined ? { text: message.body } : { media: message.media }
      const { payload } = renderOutbound('telegram:t', message, { ...content, replyTo: message.id })
      const [chat, topic] = message.chatId.split('#')
      expect(payload['chat_id']).toBe(Number(chat))
      expect(payload['message_thread_id']).toBe(topic === undefined ? undefined : Number(topic))
      expect(payload['reply_parameters'] !== undefined).toBe(!/^cb:|:r/.test(message.id))
      echoed++
    }
    expect(echoed).toBeGreaterThan(20)
  })

  it('a pressed key parses back to the button’s id and text', () => {
    const { payload } = render({ text: '¿Talla?', buttons: [{ id: 'size:M', text: 'Talla M' }] })
    const update = sample('callback') as { callback_query: { message: { reply_markup: unknown } } }
    update.callback_query.message.reply_markup = payload['reply_markup']
    expect(parseInbound(update, { botId: BOT_ID, edits: 'ignore' })).toMatchObject({
      message: { buttonId: 'size:M', body: 'Talla M' },
    })
  })
})
