/** Samples of WhatsApp webhooks → neutral messages. */
import { describe, expect, it } from '@jest/globals'
import { chatKeyOf } from '@botmesh/core'
import { parseInbound, type MetaEvent } from '@botmesh/meta'
import { PHONE_NUMBER_ID, sample, sampleNames } from './samples.js'

/** The one event of a sample, without `raw`. */
function only(name: string): MetaEvent {
  const events = parseInbound(sample(name), PHONE_NUMBER_ID)
  expect(events).toHaveLength(1)
  const [event] = events
  if (event?.kind === 'message') delete event.message.raw
  return event!
}

const LUCIA = { chatId: '34600111222', from: '34600111222', fromName: 'Lucía Ferrer', isGroup: false }

describe('B4: WhatsApp messages in neutral form', () => {
  it('text', () => {
    expect(only('text')).toEqual({
      kind: 'message',
      message: {
        ...LUCIA,
        id: 'wamid.HBgLMzQ2MDAxMTEyMjIVAgASGBQzQTQ0001',
        type: 'text',
        body: 'Hola, quiero hacer un pedido',
        timestamp: 1_767_225_601_000,
      },
    })
  })

  it.each([
    ['text-quoting', { type: 'text', body: 'La azul', quotedId: 'wamid.HBgLMTU1NTA3ODM4ODEVAgARGBI1' }],
    [
      'image',
      {
        type: 'media',
        body: '¿Tenéis esta?',
        media: { kind: 'image', id: '1003383421387256', mimeType: 'image/jpeg', caption: '¿Tenéis esta?' },
      },
    ],
    ['audio', { type: 'media', body: '', media: { kind: 'audio', mimeType: 'audio/ogg; codecs=opus' } }],
    ['video', { type: 'media', media: { kind: 'video', id: '1166846181421424' } }],
    [
      'document',
      { type: 'media', body: 'La factura', media: { kind: 'document', fileName: 'factura-0231.pdf' } },
    ],
    ['sticker', { type: 'media', media: { kind: 'sticker', mimeType: 'image/webp' } }],
    ['button-reply', { type: 'button', body: 'Talla M', buttonId: 'size:M' }],
    ['list-reply', { type: 'button', body: 'Azul', buttonId: 'colour:blue' }],
    ['template-button', { type: 'button', body: 'Confirmar', buttonId: 'confirm-77' }],
    ['flow-reply', { type: 'other', body: 'Sent' }],
    ['location', { type: 'location', body: 'Plaça de Catalunya\nBarcelona\n41.3874,2.1686' }],
    ['contacts', { type: 'contact', body: 'Iker Sanz +34 600 333 444' }],
    ['reaction', { type: 'reaction', body: '👍', quotedId: 'wamid.HBgLMTU1NTA3ODM4ODEVAgARGBI6' }],
    ['reaction-removed', { type: 'reaction', body: '' }],
    ['order', { type: 'other', body: '2 × camiseta-01 (15 EUR)\nPara el viernes' }],
    ['unsupported', { type: 'other', body: '' }],
  ])('%s', (name, expected) => {
    expect(only(name)).toMatchObject({ kind: 'message', message: { ...LUCIA, ...expected } })
  })

  it('users who hide their number are known by the id made for this business, also by name', () => {
    const user = 'ES.13491208655302741918'
    expect(only('text-hidden-number')).toMatchObject({
      message: { chatId: user, from: user, fromName: 'Nerea Ibarra', type: 'text', isGroup: false },
    })
  })

  it('B4: in a group the chat key is per participant', () => {
    const event = only('text-in-group')
    if (event.kind !== 'message') throw new Error('not a message')
    const { message } = event
    expect(message).toMatchObject({ isGroup: true, participant: '34600111222', from: '34600111222' })
    expect(chatKeyOf({ provider: 'meta:shop', ...message })).toBe(
      `meta%3Ashop/${encodeURIComponent(message.chatId)}/34600111222`,
    )
  })

  it('several entries, changes and messages of one body keep their order; other numbers are ignored', () => {
    const events = parseInbound(sample('several'), PHONE_NUMBER_ID)
    expect(events.map((event) => (event.kind === 'message' ? event.message.body : event.kind))).toEqual([
      'uno',
      'dos',
      'tres',
      'ignored',
      'ignored',
      'cuatro',
    ])
    expect(events.filter((event) => event.kind === 'ignored')).toEqual([
      { kind: 'ignored', reason: 'for phone number id 999000111222333' },
      { kind: 'ignored', reason: 'event type "account_update"' },
    ])
  })

  it('statuses are no messages; a failed one carries its error, a send key comes back', () => {
    expect(parseInbound(sample('statuses'), PHONE_NUMBER_ID)).toEqual([
      expect.objectContaining({
        kind: 'status',
        status: expect.objectContaining({
          status: 'sent',
          sendKey: 'rec-1/talla/1/0',
          timestamp: 1_767_225_700_000,
        }),
      }),
      expect.objectContaining({ status: expect.objectContaining({ status: 'delivered' }) }),
      expect.objectContaining({
        status: expect.objectContaining({
          status: 'failed',
          error: expect.objectContaining({ code: 131047 }),
        }),
      }),
    ])
  })

  it('errors of the account are problems, service messages are ignored', () => {
    expect(only('account-error')).toEqual({ kind: 'problem', code: 130429, title: 'Rate limit hit' })
    expect(only('system-number-change')).toEqual({ kind: 'ignored', reason: 'message type "system"' })
  })

  it('ignores what its own number wrote', () => {
    const body = sample('text') as { entry: { changes: { value: { messages: { from: string }[] } }[] }[] }
    body.entry[0]!.changes[0]!.value.messages[0]!.from = '15550783881'
    expect(parseInbound(body, PHONE_NUMBER_ID)).toEqual([
      { kind: 'ignored', reason: 'written by this number' },
    ])
  })

  it('every message of every sample is plain JSON but for raw', () => {
    for (const name of sampleNames) {
      for (const event of parseInbound(sample(name), PHONE_NUMBER_ID)) {
        if (event.kind !== 'message') continue
        const { raw, ...rest } = event.message
        expect(JSON.parse(JSON.stringify(rest))).toEqual(rest)
        expect(raw).toBeDefined()
      }
    }
  })

  it('one malformed message does not cost its neighbours', () => {
    const body = sample('several') as { entry: { changes: { value: { messages: unknown[] } }[] }[] }
    body.entry[0]!.changes[0]!.value.messages[0] = { id: 7, type: 'text' }
    const kinds = parseInbound(body, PHONE_NUMBER_ID).map((event) => event.kind)
    expect(kinds).toEqual(['ignored', 'message', 'message', 'ignored', 'ignored', 'message'])
  })
})
