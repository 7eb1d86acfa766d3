/**
 * Neutral content → bodies of Messenger's and Instagram's `/me/messages`. Pure. What the platform cannot show is
 * shown in the next best way: over three buttons become quick replies, over thirteen numbered lines.
 */
import { SendError, type Button, type OutgoingContent, type SendTarget } from '@botmesh/core'
import type { OutgoingMedia } from '../media-upload.js'
import { cut, sizeOf, splitText } from '../text-limits.js'
import { ATTACHMENT_TYPES, LIMIT, type PagePlatform } from './platform.js'

type Body = Record<string, unknown>

export interface PageRenderOptions {
  provider: string
  platform: PagePlatform
  /** A text that is too long for one message: several, or a final error. */
  longText: 'split' | 'refuse'
}

/** Fields of `content.platform` that go beside the message, and into it. */
const REQUEST_FIELDS = ['messaging_type', 'tag', 'notification_type', 'persona_id'] as const
const MESSAGE_FIELDS = ['attachment', 'quick_replies', 'metadata'] as const

/**
 * The bodies of one message, to be sent one after the other: a media and its text, or the parts of a long text. What
 * can be answered by a tap hangs on the last one, the quotation on the first.
 * @param content its media must have an id or a link: bytes are uploaded before.
 * @throws SendError `final` for what the platform cannot say.
 */
export function renderPage(to: SendTarget, content: OutgoingContent, options: PageRenderOptions): Body[] {
  const refuse = (message: string): never => {
    throw new SendError(message, { provider: options.provider, outcome: 'final' })
  }
  const fields = content.platform ?? {}
  const known: readonly string[] = [...REQUEST_FIELDS, ...MESSAGE_FIELDS]
  const unknown = Object.keys(fields).find((name) => !known.includes(name))
  if (unknown !== undefined) refuse(`platform.${unknown} is not sent; what is: ${known.join(', ')}.`)
  if (content.template !== undefined) {
    refuse(`${options.platform.name} has no templates of this kind: send text, or platform: { attachment }.`)
  }
  const messages = messagesOf(content, pick(fields, MESSAGE_FIELDS), options, refuse)
  if (messages.length === 0) refuse('The message is empty: give it text, media, buttons or a list.')
  const request = { messaging_type: fields['tag'] === undefined ? 'RESPONSE' : 'MESSAGE_TAG' }
  return messages.map((message, index) => ({
    recipient: { id: to.chatId },
    ...request,
    ...pick(fields, REQUEST_FIELDS),
    ...(index === 0 && content.replyTo !== undefined ? { reply_to: { mid: content.replyTo } } : {}),
    message,
  }))
}

/** `renderPage` for one messenger: what its package calls `renderOutbound`. @param options.longText default `'split'`. */
export function outboundRenderer(platform: PagePlatform) {
  return (
    provider: string,
    to: SendTarget,
    content: OutgoingContent,
    options: Partial<Pick<PageRenderOptions, 'longText'>> = {},
  ): Body[] => renderPage(to, content, { provider, platform, longText: options.longText ?? 'split' })
}

/** The body that shows "typing…", or the mark that all was read. */
export function renderAction(to: SendTarget, action: 'typing_on' | 'typing_off' | 'mark_seen'): Body {
  return { recipient: { id: to.chatId }, sender_action: action }
}

type Refuse = (message: string) => never

function messagesOf(content: OutgoingContent, own: Body, options: PageRenderOptions, refuse: Refuse): Body[] {
  const { media } = content
  const text = content.text ?? media?.caption ?? ''
  const choice = choiceOf(content)
  const tooMany = choice.length > LIMIT.quickReplies
  // A button has no room for a description: that stands in the text.
  const words = tooMany || choice.some((one) => one.description) ? numbered(text, choice) : text
  const buttons = tooMany ? [] : choice
  if (own['attachment'] !== undefined) return [...textMessages(text, options, refuse), own]
  if (media !== undefined && fitsCard(media, words, buttons)) return [card(media.url!, words, buttons)]
  const lead = media === undefined ? [] : [mediaMessage(media, refuse)]
  const captioned = media?.caption !== undefined && content.text !== undefined ? media.caption : ''
  const behind = [
    ...textMessages(captioned, options, refuse),
    ...withButtons(words, buttons, lead.length > 0, options, refuse),
  ]
  const all = [...lead, ...behind]
  const last = all.at(-1)
  if (last === undefined) return Object.keys(own).length === 0 ? [] : refuse('The message has no text.')
  // Quick replies under a media that has no text hang on the media itself, where the platform lets them.
  const hanging = behind.length === 0 && buttons.length > 0 ? { quick_replies: quickReplies(buttons) } : {}
  return [...all.slice(0, -1), { ...last, ...hanging, ...own }]
}

interface Choice extends Button {
  description?: string | undefined
}

/** Buttons, or the rows of a list. */
function choiceOf({ buttons, list }: OutgoingContent): readonly Choice[] {
  if (list === undefined) return buttons ?? []
  return list.sections
    .flatMap((section) => section.rows)
    .map(({ id, title, description }) => ({ id, text: title, description }))
}

function withButtons(
  text: string,
  buttons: readonly Button[],
  onMedia: boolean,
  options: PageRenderOptions,
  refuse: Refuse,
): Body[] {
  if (buttons.length === 0) return textMessages(text, options, refuse)
  if (text === '') {
    if (onMedia && options.platform.quickRepliesOnMedia) return []
    // The platform wants words to hang them on.
    return textMessages(numbered('', buttons), options, refuse)
  }
  if (buttons.length <= LIMIT.buttons && text.length <= LIMIT.buttonText) {
    const payload = { template_type: 'button', text, buttons: postbacks(buttons) }
    return [{ attachment: { type: 'template', payload } }]
  }
  const texts = textMessages(text, options, refuse)
  return texts.map((one, index) =>
    index < texts.length - 1 ? one : { ...one, quick_replies: quickReplies(buttons) },
  )
}

function textMessages(text: string, { platform, longText }: PageRenderOptions, refuse: Refuse): Body[] {
  if (text === '') return []
  const { most, unit } = platform.text
  const size = sizeOf(text, unit)
  if (size > most && longText === 'refuse') {
    refuse(
      `The text has ${size} ${unit}, ${platform.name} takes ${most}: shorten it, or set longText: 'split'.`,
    )
  }
  return splitText(text, platform.text).map((part) => ({ text: part }))
}

function mediaMessage(media: OutgoingMedia, refuse: Refuse): Body {
  const type = ATTACHMENT_TYPES[media.kind]
  if (media.id !== undefined) return { attachment: { type, payload: { attachment_id: media.id } } }
  if (media.url !== undefined) return { attachment: { type, payload: { url: media.url } } }
  return refuse('The media has no content: give it an id, a url or data.')
}

/** A picture by its link over a short text and up to three buttons is one message. */
function fitsCard(media: OutgoingMedia, text: string, buttons: readonly Button[]): boolean {
  return (
    media.kind === 'image' &&
    media.id === undefined &&
    media.url !== undefined &&
    text !== '' &&
    text.length <= LIMIT.cardTitle &&
    buttons.length > 0 &&
    buttons.length <= LIMIT.buttons
  )
}

function card(imageUrl: string, title: string, buttons: readonly Button[]): Body {
  const elements = [{ title, image_url: imageUrl, buttons: postbacks(buttons) }]
  return { attachment: { type: 'template', payload: { template_type: 'generic', elements } } }
}

function postbacks(buttons: readonly Button[]): Body[] {
  return buttons.map(({ id, text }) => ({
    type: 'postback',
    title: cut(text, LIMIT.title),
    payload: id.slice(0, LIMIT.payload),
  }))
}

function quickReplies(buttons: readonly Button[]): Body[] {
  return buttons.map(({ id, text }) => ({
    content_type: 'text',
    title: cut(text, LIMIT.title),
    payload: id.slice(0, LIMIT.payload),
  }))
}

function numbered(text: string, choices: readonly Choice[]): string {
  const lines = choices.map(
    (choice, index) => `${index + 1}. ${[choice.text, choice.description].filter(Boolean).join(' - ')}`,
  )
  return [text, ...lines].filter(Boolean).join('\n')
}

function pick(fields: Readonly<Record<string, unknown>>, names: readonly string[]): Body {
  return Object.fromEntries(
    names.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]),
  )
}
