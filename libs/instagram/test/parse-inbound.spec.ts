/** Samples of Instagram's webhooks → neutral messages. */
import { describe, expect, it } from '@jest/globals'
import { parseInbound, renderOutbound, type InstagramEvent } from '@botmesh/instagram'
import { ACCOUNT_ID, fixture } from './fixture.js'

const [USER] = fixture.users

function events(name: string, options: { edits?: 'deliver' } = {}): InstagramEvent[] {
  return parseInbound(fixture.samples.json(name), ACCOUNT_ID, options)
}

describe('B4: Instagram’s messages in neutral form', () => {
  it.each([
    ['text', { type: 'text', body: 'Hola, ¿la tenéis en azul?', timestamp: 1_767_225_601_000 }],
    ['text-quoting', { type: 'text', body: 'Esta', quotedId: expect.any(String) }],
    ['story-reply', { type: 'text', body: '¡Qué bonita! ¿Precio?' }],
    ['story-mention', { type: 'other', body: expect.stringMatching(/^https:\/\/lookaside/) }],
    ['quick-reply', { type: 'button', body: 'Talla M', buttonId: 'size:M' }],
    ['postback', { type: 'button', body: 'Confirmar', buttonId: 'confirm-77' }],
    [
      'image',
      { type: 'media', media: { kind: 'image', url: expect.stringMatching(/^https:\/\/lookaside/) } },
    ],
    ['audio', { type: 'media', media: { kind: 'audio' } }],
    ['video', { type: 'media', media: { kind: 'video' } }],
    ['file', { type: 'media', media: { kind: 'document' } }],
    ['shared-post', { type: 'other', body: expect.stringMatching(/^Nueva temporada\nhttps:/) }],
    [
      'shared-reel',
      { type: 'other', body: expect.stringMatching(/^¿Esta es la vuestra\?\nCómo doblarla\nhttps:/) },
    ],
    ['view-once', { type: 'other', body: '' }],
    ['unsupported', { type: 'other', body: '' }],
    ['reaction', { type: 'reaction', body: '❤️', quotedId: expect.any(String) }],
    ['reaction-removed', { type: 'reaction', body: '' }],
  ])('%s', (name, expected) => {
    expect(events(name)).toMatchObject([
      { kind: 'message', message: { chatId: USER, from: USER, ...expected } },
    ])
  })

  it('several pictures of one message are messages of their own', () => {
    expect(events('several-images')).toMatchObject([
      { message: { media: { kind: 'image' } } },
      { message: { id: expect.stringMatching(/#2$/) } },
    ])
  })

  it('corrections come with editOf where they are wished for, the first edition never', () => {
    expect(events('edited')).toEqual([{ kind: 'ignored', reason: 'a correction' }])
    expect(events('edited', { edits: 'deliver' })).toMatchObject([
      { message: { body: 'Hola, ¿la tenéis en verde?', editOf: expect.any(String) } },
    ])
    expect(events('first-edition', { edits: 'deliver' })).toEqual([
      { kind: 'ignored', reason: 'a correction' },
    ])
  })

  it('what was seen is a receipt', () => {
    expect(events('seen')).toMatchObject([
      { kind: 'receipt', receipt: { kind: 'read', chatId: USER, messageIds: [expect.any(String)] } },
    ])
  })

  it('what is none of it is ignored with its reason', () => {
    const names = ['echo', 'to-oneself', 'deleted', 'referral', 'standby', 'comment']
    expect(names.flatMap((name) => events(name))).toEqual([
      { kind: 'ignored', reason: 'written by this account' },
      { kind: 'ignored', reason: 'written by this account' },
      { kind: 'ignored', reason: 'a message was taken back' },
      { kind: 'ignored', reason: 'event type "referral"' },
      { kind: 'ignored', reason: 'standby: another app has this conversation' },
      { kind: 'ignored', reason: 'event type "comments"' },
    ])
  })

  it('several entries keep their order; other accounts are ignored', () => {
    const seen = events('several').map((event) =>
      event.kind === 'message' ? event.message.body : event.kind,
    )
    expect(seen).toEqual(['uno', 'dos', 'ignored', 'ignored', 'tres', 'receipt', 'cuatro'])
  })

  it('choices under a media without words get numbered lines: quick replies want a text here', () => {
    const content = { media: { kind: 'image' as const, id: '5' }, buttons: [{ id: 'y', text: 'Sí' }] }
    expect(renderOutbound('instagram:shop', { chatId: USER }, content)).toMatchObject([
      { message: { attachment: { type: 'image' } } },
      { message: { text: '1. Sí' } },
    ])
  })
})
