/**
 * Neutral content → bodies of the Cloud API's `/messages`. Pure. What the platform cannot show is shown in the next
 * best way: over three buttons become a list, over ten numbered lines.
 */
import { SendError, type Button, type OutgoingContent, type SendTarget } from '@botmesh/core'

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
} as const

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
    recipient_type: /^\+?\d+$/.test(to.chatId) ? 'individual' : 'group',
    to: to.chatId,
    ...(content.replyTo === undefined ? {} : { context: { message_id: content.replyTo } }),
    ...(options.sendKey === undefined ? {} : { biz_opaque_callback_data: options.sendKey.slice(0, 512) }),
    ...renderLead(provider, content),
  }
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
  const takesCaption = media.kind === 'image' || media.kind === 'video' || media.kind === 'document'
  return {
    type: media.kind,
    [media.kind]: {
      ...mediaReference(provider, media),
      ...(takesCaption && caption !== undefined && caption !== '' ? { caption } : {}),
      ...(media.kind === 'document' && media.fileName !== undefined ? { filename: media.fileName } : {}),
    },
  }
}

function mediaReference(provider: string, media: NonNullable<OutgoingContent['media']>): Body {
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
    media !== undefined && media.kind !== 'audio' && media.kind !== 'sticker'
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

/** Cuts between characters as people see them, so that no emoji is halved. */
function cut(text: string, limit: number): string {
  if (text.length <= limit) return text
  let kept = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (kept.length + segment.length > limit - 1) break
    kept += segment
  }
  return `${kept}…`
}
