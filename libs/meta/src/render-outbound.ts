/**
 * Neutral content → bodies of the Cloud API's `/messages`. Pure. What the platform cannot show is shown in the next
 * best way: over three buttons become a list, over ten numbered lines.
 */
import { SendError, type Button, type OutgoingContent, type SendTarget } from '@botmesh/core'
import type { OutgoingMedia } from './media-upload.js'
import { cut, splitText, type TextLimit } from './text-limits.js'

type Body = Record<string, unknown>
type List = NonNullable<OutgoingContent['list']>

/** Limits of the platform, in characters or pieces. */
const LIMIT = {
  buttons: 3,
  rows: 10,
  buttonTitle: 20,
  rowTitle: 24,
  rowDescription: 72,
  sectionTitle: 24,
  interactiveText: 1024,
  buttonId: 256,
  rowId: 200,
  caption: 1024,
} as const
const SEND_KEY_CHARS = 512
const TEXT: TextLimit = { most: 4096, unit: 'characters' }

/**
 * The bodies of one message: what `renderOutbound` makes of it, and before or behind it what does not fit there. A
 * long text becomes several; a text under a media that takes none, or too long for it, follows the media.
 * The send key of the second and further bodies ends in `#2`, `#3`, ….
 * @throws SendError as `renderOutbound`.
 */
export function renderMessages(
  provider: string,
  to: SendTarget,
  content: OutgoingContent,
  options: { sendKey?: string } = {},
): Body[] {
  return partsOf(content)
    .flatMap((part) => inFittingBodies(renderOutbound(provider, to, part)))
    .map((body, index) => ({ ...body, ...sendKeyOf(options.sendKey, index) }))
}

function partsOf(content: OutgoingContent): OutgoingContent[] {
  const { media, ...others } = content
  if (media === undefined || content.template !== undefined) return [content]
  const { caption, ...bare } = media
  const { text, list, replyTo } = content
  const quote = replyTo === undefined ? {} : { replyTo }
  const buttons = content.buttons ?? []
  if (list !== undefined || buttons.length > 0) {
    const words = text ?? caption ?? ''
    const fits = list === undefined && buttons.length <= LIMIT.buttons && isHeader(media)
    if (fits && fitsInteractive(words)) return [content]
    // A list, or a long text over buttons, has no room for a media: it goes ahead.
    return [
      { ...quote, media: text === undefined ? bare : media },
      { ...others, text: words },
    ]
  }
  const under = caption ?? text ?? ''
  const shown = takesCaption(media) && under.length <= LIMIT.caption
  const behind = [shown ? '' : under, caption === undefined ? '' : (text ?? '')].filter(
    (words) => words !== '',
  )
  return [
    { ...quote, media: shown && under !== '' ? { ...bare, caption: under } : bare },
    ...behind.map((words) => ({ text: words })),
  ]
}

function inFittingBodies(body: Body): Body[] {
  const { text } = body as { text?: { body: string; preview_url: boolean } }
  if (body['type'] !== 'text' || text === undefined) return [body]
  const [first = '', ...more] = splitText(text.body, TEXT)
  const { context: _quoted, ...plain } = body
  return [
    { ...body, text: { ...text, body: first } },
    ...more.map((part) => ({ ...plain, text: { ...text, body: part } })),
  ]
}

function sendKeyOf(key: string | undefined, index: number): Body {
  if (key === undefined) return {}
  const suffix = index === 0 ? '' : `#${index + 1}`
  return { biz_opaque_callback_data: key.slice(0, SEND_KEY_CHARS - suffix.length) + suffix }
}

/**
 * @param content its media must have an id or a link: bytes are uploaded before.
 * @param options.sendKey comes back in the status webhooks of this message.
 * @throws SendError `final` for content that says nothing.
 */
export function renderOutbound(
  provider: string,
  to: SendTarget,
  content: OutgoingContent,
  options: { sendKey?: string } = {},
): Body {
  return {
    messaging_product: 'whatsapp',
    ...recipientOf(to.chatId),
    ...(content.replyTo === undefined ? {} : { context: { message_id: content.replyTo } }),
    ...sendKeyOf(options.sendKey, 0),
    ...renderLead(provider, content),
  }
}

/** Phone numbers, the ids of users who hide theirs (`ES.1349…`), and groups. */
function recipientOf(chatId: string): Body {
  if (/^\+?\d+$/.test(chatId)) return { recipient_type: 'individual', to: chatId }
  if (/^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]+$/.test(chatId)) {
    return { recipient_type: 'individual', recipient: chatId }
  }
  return { recipient_type: 'group', to: chatId }
}

/** The body that tells the user that a message was read, and, with `typing`, that an answer is being written. */
export function renderReadMark(messageId: string, typing: boolean): Body {
  return {
    messaging_product: 'whatsapp',
    status: 'read',
    message_id: messageId,
    ...(typing ? { typing_indicator: { type: 'text' } } : {}),
  }
}

function renderLead(provider: string, content: OutgoingContent): Body {
  if (content.template !== undefined) return renderTemplate(content.template)
  if (content.list !== undefined)
    return renderList(content.text ?? content.media?.caption ?? '', content.list)
  if (content.buttons !== undefined && content.buttons.length > 0) {
    return renderButtons(provider, content, content.buttons)
  }
  if (content.media !== undefined) return renderMedia(provider, content)
  if (content.text !== undefined && content.text !== '') {
    return { type: 'text', text: { body: content.text, preview_url: /https?:\/\//.test(content.text) } }
  }
  throw new SendError('The message is empty: give it text, media, buttons, a list or a template.', {
    provider,
    outcome: 'final',
  })
}

function renderTemplate(template: NonNullable<OutgoingContent['template']>): Body {
  const variables = template.variables ?? []
  const components =
    template.components ??
    (variables.length === 0
      ? undefined
      : [{ type: 'body', parameters: variables.map((value) => ({ type: 'text', text: value })) }])
  return {
    type: 'template',
    template: {
      name: template.name,
      language: { code: template.language },
      ...(components === undefined ? {} : { components }),
    },
  }
}

function renderMedia(provider: string, content: OutgoingContent): Body {
  const media = content.media!
  const caption = media.caption ?? content.text
  return {
    type: media.kind,
    [media.kind]: {
      ...mediaReference(provider, media),
      ...(takesCaption(media) && caption !== undefined && caption !== '' ? { caption } : {}),
      ...(media.kind === 'document' && media.fileName !== undefined ? { filename: media.fileName } : {}),
    },
  }
}

function takesCaption({ kind }: OutgoingMedia): boolean {
  return kind === 'image' || kind === 'video' || kind === 'document'
}

/** May stand over buttons. */
function isHeader({ kind }: OutgoingMedia): boolean {
  return kind !== 'audio' && kind !== 'sticker'
}

function mediaReference(provider: string, media: OutgoingMedia): Body {
  if (media.id !== undefined) return { id: media.id }
  if (media.url !== undefined) return { link: media.url }
  throw new SendError('The media has no content: give it an id, a url or data.', {
    provider,
    outcome: 'final',
  })
}

function renderButtons(provider: string, content: OutgoingContent, buttons: readonly Button[]): Body {
  const text = content.text ?? content.media?.caption ?? ''
  if (buttons.length > LIMIT.buttons) {
    const rows = buttons.map((button) => ({ id: button.id, title: button.text }))
    return renderList(text, { button: '☰', sections: [{ rows }] })
  }
  if (!fitsInteractive(text))
    return numbered(
      text,
      buttons.map((button) => button.text),
    )
  const media = content.media
  const header =
    media !== undefined && isHeader(media)
      ? { header: { type: media.kind, [media.kind]: mediaReference(provider, media) } }
      : {}
  return {
    type: 'interactive',
    interactive: {
      type: 'button',
      ...header,
      body: { text },
      action: {
        buttons: buttons.map((button) => ({
          type: 'reply',
          reply: { id: button.id.slice(0, LIMIT.buttonId), title: cut(button.text, LIMIT.buttonTitle) },
        })),
      },
    },
  }
}

function renderList(text: string, list: List): Body {
  const rows = list.sections.flatMap((section) => section.rows)
  if (rows.length > LIMIT.rows || rows.length === 0 || !fitsInteractive(text)) {
    return numbered(
      text,
      rows.map((row) => (row.description === undefined ? row.title : `${row.title} - ${row.description}`)),
    )
  }
  return {
    type: 'interactive',
    interactive: {
      type: 'list',
      body: { text },
      action: {
        button: cut(list.button === '' ? '☰' : list.button, LIMIT.buttonTitle),
        sections: list.sections
          .filter((section) => section.rows.length > 0)
          .map((section, _, sections) => ({
            // The platform wants titles as soon as there are two sections.
            ...(section.title === undefined && sections.length === 1
              ? {}
              : { title: cut(section.title ?? '—', LIMIT.sectionTitle) }),
            rows: section.rows.map((row) => ({
              id: row.id.slice(0, LIMIT.rowId),
              title: cut(row.title, LIMIT.rowTitle),
              ...(row.description === undefined
                ? {}
                : { description: cut(row.description, LIMIT.rowDescription) }),
            })),
          })),
      },
    },
  }
}

/** The platform refuses interactive messages without a text, or with a long one. */
function fitsInteractive(text: string): boolean {
  return text !== '' && text.length <= LIMIT.interactiveText
}

function numbered(text: string, choices: readonly string[]): Body {
  const lines = choices.map((choice, index) => `${index + 1}. ${choice}`)
  return { type: 'text', text: { body: [text, ...lines].filter(Boolean).join('\n'), preview_url: false } }
}
