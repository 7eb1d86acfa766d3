/** What is cut off a text, what is not answered, and which options are accepted. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '@botmesh/core'
import {
  EmailProvider,
  cutQuoted,
  readMail,
  whyNotAnswered,
  type EmailOptions,
  type Self,
} from '@botmesh/email'
import { answerSubject } from '../src/render-outbound.js'
import { mailOf } from './mails.js'

describe('B4: what a person wrote', () => {
  it.each([
    ['nothing to cut', 'Hola,\n\nsoy Ana.', 'Hola,\n\nsoy Ana.'],
    ['Gmail, English', 'Yes\n\nOn Mon, Jan 5, 2026 at 10:00 AM Shop <s@x.org> wrote:\n\n> Sure?', 'Yes'],
    [
      'Gmail, wrapped',
      'Yes\n\nOn Mon, Jan 5, 2026 at 10:00 AM Shop\n<s@x.org> wrote:\n> Sure?\n> 1. a',
      'Yes',
    ],
    ['Spanish', 'Sí\n\nEl lun, 5 ene 2026 a las 10:00, Tienda (<s@x.org>) escribió:\n> ¿Seguro?', 'Sí'],
    ['Portuguese', 'Sim\n\nEm seg., 5 de jan. de 2026 às 10:00, Loja <s@x.org> escreveu:\n> Certo?', 'Sim'],
    ['French', 'Oui\n\nLe lun. 5 janv. 2026 à 10:00, Boutique <s@x.org> a écrit :\n> Sûr ?', 'Oui'],
    ['German', 'Ja\n\nAm Mo., 5. Jan. 2026 um 10:00 Uhr schrieb Laden <s@x.org>:\n> Sicher?', 'Ja'],
    ['without marks', 'Ok\n\nOn 5 Jan 2026, Shop <s@x.org> wrote:\n\nSure?\nReally?', 'Ok'],
    [
      'Outlook',
      'Ok\n\nDe: Tienda <s@x.org>\nEnviado: lunes\nPara: Ana\nAsunto: Re: Pedido\n\n¿Seguro?',
      'Ok',
    ],
    [
      'Outlook, ruled',
      'Ok\n________________________________\nFrom: S <s@x.org>\nSent: Monday\nTo: A\nSubject: B\n\nx',
      'Ok',
    ],
    ['original message', 'Ok\n-----Mensaje original-----\nDe: x\n\nviejo', 'Ok'],
    ['a signature', 'Ok\n-- \nAna\nTel. 1', 'Ok'],
    ['a phone', 'Ok\n\nEnviado desde mi iPhone', 'Ok'],
    ['only a quotation', '> a\n> b', ''],
    ['answers in between', 'On 5 Jan 2026 S <s@x.org> wrote:\n> a?\n1\n> b?\n2', '1\n2'],
    ['a sentence that looks alike', 'El cliente escribió:\nquiero dos', 'El cliente escribió:\nquiero dos'],
    ['a list with From', 'From: Madrid\nhasta Sevilla', 'From: Madrid\nhasta Sevilla'],
    ['dashes in a text', 'a\n- b\n--- c', 'a\n- b\n--- c'],
  ])('%s', (_name, text, expected) => {
    expect(cutQuoted(text)).toBe(expected)
    expect(cutQuoted(text.replaceAll('\n', '\r\n'))).toBe(expected)
  })

  it('an answer’s subject has one Re:', () => {
    expect(['Pedido', 'Re: Pedido', 'RE: AW: Pedido', 'RV: re[2]: Pedido', ''].map(answerSubject)).toEqual([
      ...Array.from({ length: 4 }, () => 'Re: Pedido'),
      'Re:',
    ])
  })
})

const SELF: Self = {
  id: 'email:t',
  own: new Set(['tienda@example.org']),
  tag: 'bm00000000',
  domain: 'example.org',
}

async function verdict(mail: Parameters<typeof mailOf>[0]): Promise<string | null> {
  return whyNotAnswered((await readMail(Buffer.from(mailOf(mail))))!, SELF)
}

describe('issue 5, manners', () => {
  it.each([
    ['Auto-Submitted', 'auto-notified'],
    ['X-Auto-Response-Suppress', 'OOF, AutoReply'],
    ['Precedence', 'bulk'],
    ['Precedence', 'list'],
    ['List-Id', '<x.example.net>'],
    ['List-Unsubscribe', '<mailto:x@example.net>'],
    ['Return-Path', '<>'],
    ['X-Failed-Recipients', 'x@example.net'],
    ['X-Autoreply', 'yes'],
    ['X-Spam-Flag', 'YES'],
    ['X-Botmesh-Bot', 'email:t'],
  ])('a mail with %s: %s is not answered', async (name, value) => {
    expect(await verdict({ headers: { [name]: value } })).not.toBeNull()
  })

  it.each([
    ['Auto-Submitted', 'no'],
    ['X-Auto-Response-Suppress', 'DR, RN, NRN'],
    ['Precedence', 'first-class'],
    ['Return-Path', '<ana@example.com>'],
    ['X-Botmesh-Bot', 'email:another'],
  ])('a mail with %s: %s is', async (name, value) => {
    expect(await verdict({ headers: { [name]: value } })).toBeNull()
  })

  it.each([
    'noreply@x.org',
    'no-reply@x.org',
    'shop.no-reply@x.org',
    'do_not_reply@x.org',
    'donotreply@x.org',
    'no-responder@x.org',
    'no_contestar@x.org',
    'mailer-daemon@x.org',
    'postmaster@x.org',
    'bounces+ana=x.org@y.org',
    'tienda@example.org',
  ])('%s is not answered', async (from) => {
    expect(await verdict({ from })).not.toBeNull()
  })

  it.each(['noel@x.org', 'norepo@x.org', 'donna@x.org', 'reply@x.org', 'nota@x.org'])(
    '%s is',
    async (from) => {
      expect(await verdict({ from })).toBeNull()
    },
  )

  it('a mail without a sender that can be answered is not', async () => {
    for (const from of ['undisclosed', '"x" <>', '', '<@>']) {
      expect(await verdict({ from })).not.toBeNull()
    }
  })
})

describe('options', () => {
  const GOOD: EmailOptions = {
    address: 'Tienda@Example.org',
    imap: { host: 'imap.example.org', password: 'hunter2-hunter2' },
    smtp: { host: 'smtp.example.org', password: 'hunter2-hunter2' },
  }

  it('P2: with a mailbox it is exclusive, without it is not; the id is email:<address>', () => {
    const { imap: _imap, ...ingesting } = GOOD
    const mailbox = new EmailProvider(GOOD)
    expect(mailbox).toMatchObject({
      id: 'email:tienda@example.org',
      capabilities: { exclusiveSession: true },
    })
    expect(mailbox.handle).toBeUndefined()
    const shared = new EmailProvider({ ...ingesting, account: 'tienda', webhook: { secret: 'x'.repeat(16) } })
    expect(shared.id).toBe('email:tienda')
    expect(shared.capabilities.exclusiveSession).toBeUndefined()
    expect(shared.handle).toBeDefined()
  })

  it.each<[string, object]>([
    ['address', { address: 'tienda' }],
    ['address', { address: undefined }],
    ['imap.host', { imap: { host: undefined, password: 'hunter2-hunter2' } }],
    ['imap.password', { imap: { host: 'h' } }],
    ['imap.password', { imap: { host: 'h', password: '' } }],
    ['imap.port', { imap: { host: 'h', password: 'hunter2-hunter2', port: 70_000 } }],
    ['smtp.security', { smtp: { host: 'h', security: 'ssl' } }],
    ['smtp', { smtp: undefined }],
    ['smtp.accessToken', { smtp: { host: 'h', password: 'hunter2-hunter2', accessToken: 'x' } }],
    ['webhook', { webhook: { secret: 'hunter2-hunter2-x' } }],
    ['webhook.secret', { imap: undefined, webhook: { secret: 'hunter2' } }],
    ['checkMs', { checkMs: '55s' }],
    ['maxAttachmentBytes', { maxAttachmentBytes: 0 }],
    ['subject', { subject: 'a\nBcc: x@y' }],
  ])('a wrong %s is a ConfigError that names it, and shows no secret', (option, wrong) => {
    const build = () => new EmailProvider({ ...GOOD, ...wrong })
    expect(build).toThrow(ConfigError)
    try {
      build()
    } catch (error) {
      expect(error).toMatchObject({ details: { option } })
      expect(JSON.stringify([error, String(error)])).not.toContain('hunter2')
    }
  })

  it('a misspelt option is named, with the right one', () => {
    expect(() => new EmailProvider({ ...GOOD, adress: 'x' } as EmailOptions)).toThrow(/adress.*address/s)
  })
})
