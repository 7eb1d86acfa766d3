/** Samples of Messenger's webhooks → neutral messages. */
import { describe, expect, it } from '@jest/globals'
import { parseInbound, renderOutbound, type MessengerEvent } from '@botmesh/messenger'
import { ACCOUNT_ID, fixture } from './fixture.js'

const [USER] = fixture.users

function events(name: string, options: { edits?: 'deliver' } = {}): MessengerEvent[] {
  return parseInbound(fixture.samples.json(name), ACCOUNT_ID, options).map((event) => {
    if (event.kind === 'message') delete event.message.raw
    return event
  })
}

describe('B4: Messenger’s messages in neutral form', () => {
  it('text', () => {
    expect(events('text')).toEqual([
      {
        kind: 'message',
        message: {
          id: 'm_Kx7Yq3dHc2v01wZpLQ8sTnRb5GfJ0aVtEiOuMhXrW4',
          chatId: USER,
          from: USER,
          isGroup: false,
          type: 'text',
          body: 'Hola, quiero hacer un pedido',
          timestamp: 1_767_225_601_000,
        },
      },
    ])
  })

  it.each([
    ['text-quoting', { type: 'text', quotedId: expect.stringMatching(/^m_.*90/) }],
    ['quick-reply', { type: 'button', body: 'Talla M', buttonId: 'size:M' }],
    ['postback', { type: 'button', body: 'Confirmar', buttonId: 'confirm-77' }],
    [
      'postback-get-started',
      { id: `postback:${USER}:1767225605000`, type: 'button', body: 'Empezar', buttonId: 'GET_STARTED' },
    ],
    ['image', { type: 'media', body: '', media: { kind: 'image', url: expect.stringContaining('fbcdn') } }],
    ['sticker', { type: 'media', media: { kind: 'sticker' } }],
    ['audio', { type: 'media', media: { kind: 'audio' } }],
    ['video', { type: 'media', media: { kind: 'video' } }],
    ['file', { type: 'media', media: { kind: 'document' } }],
    ['location', { type: 'location', body: 'Plaça de Catalunya\n41.3874,2.1686' }],
    ['link-in-text', { type: 'text', body: '¿Tenéis esta? https://tienda.example/azul' }],
    ['shared-link', { type: 'other', body: 'Camiseta azul\nhttps://tienda.example/azul' }],
    ['reaction', { type: 'reaction', body: '❤', quotedId: expect.stringMatching(/^m_.*91/) }],
    ['reaction-removed', { type: 'reaction', body: '' }],
  ])('%s', (name, expected) => {
    expect(events(name)).toMatchObject([{ kind: 'message', message: { chatId: USER, ...expected } }])
  })

  it('several pictures of one message are messages of their own, with ids of their own', () => {
    const ids = events('several-images').map((event) => event.kind === 'message' && event.message.id)
    expect(ids.map((id) => String(id).slice(-3))).toEqual(['rW4', '4#2', '4#3'])
  })

  it('corrections come with editOf where they are wished for', () => {
    expect(events('edited')).toEqual([{ kind: 'ignored', reason: 'a correction' }])
    expect(events('edited', { edits: 'deliver' })).toMatchObject([
      { message: { body: 'Hola, quiero hacer dos pedidos', editOf: expect.any(String) } },
    ])
  })

  it('delivery and read events are receipts, not messages', () => {
    const of = { chatId: USER }
    expect(events('delivery')).toEqual([
      {
        kind: 'receipt',
        receipt: {
          ...of,
          kind: 'delivered',
          messageIds: [expect.any(String)],
          until: 1_767_225_619_000,
          timestamp: expect.any(Number),
        },
      },
    ])
    expect(events('read')).toMatchObject([
      { receipt: { ...of, kind: 'read', messageIds: [], until: 1_767_225_620_000 } },
    ])
  })

  it('what is none of it is ignored with its reason; a blocked page is a problem', () => {
    const reasons = ['echo', 'referral', 'optin', 'standby', 'page-change'].flatMap((name) => events(name))
    expect(reasons).toEqual([
      { kind: 'ignored', reason: 'written by this account' },
      { kind: 'ignored', reason: 'event type "referral"' },
      { kind: 'ignored', reason: 'event type "optin"' },
      { kind: 'ignored', reason: 'standby: another app has this conversation' },
      { kind: 'ignored', reason: 'event type "feed"' },
    ])
    expect(events('policy-enforcement')).toMatchObject([{ kind: 'problem', code: 'policy_enforcement' }])
    expect(parseInbound({ object: 'instagram', entry: [] }, ACCOUNT_ID)).toEqual([
      { kind: 'ignored', reason: 'object "instagram"' },
    ])
  })

  it('several entries keep their order; other pages are ignored', () => {
    const seen = events('several').map((event) =>
      event.kind === 'message' ? event.message.body : event.kind,
    )
    expect(seen).toEqual(['uno', 'dos', 'ignored', 'ignored', 'tres', 'receipt', 'cuatro'])
  })

  it('quick replies hang on a media that has no text', () => {
    const content = { media: { kind: 'image' as const, id: '5' }, buttons: [{ id: 'y', text: 'Sí' }] }
    expect(renderOutbound('messenger:shop', { chatId: USER }, content)).toMatchObject([
      { message: { attachment: { type: 'image' }, quick_replies: [{ payload: 'y' }] } },
    ])
  })
})
