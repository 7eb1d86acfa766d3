/** Neutral content → one Bot API call. Pure. Buttons and lists become inline keyboards. */
import { SendError, type Button, type OutgoingContent, type SendTarget } from '@botmesh/core'
import { InputFile } from 'grammy'

export interface ApiCall {
  method: string
  payload: Record<string, unknown>
}

/** Buttons this short share a row. */
const SHORT_LABEL_CHARS = 12
const BUTTONS_PER_ROW = 3
const CALLBACK_DATA_BYTES = 64

/** @throws SendError `final` for content that says nothing, or a button id over 64 bytes. */
export function renderOutbound(provider: string, to: SendTarget, content: OutgoingContent): ApiCall {
  const common = {
    ...addressOf(to.chatId),
    ...quoteOf(content.replyTo),
    ...keyboardOf(provider, content),
  }
  if (content.media !== undefined) return renderMedia(provider, content, content.media, common)
  if (content.text === undefined || content.text === '') {
    throw new SendError(
      content.template === undefined
        ? 'The message is empty: give it text or media (buttons and lists need a text over them).'
        : 'Telegram has no templates: send text.',
      { provider, outcome: 'final' },
    )
  }
  return { method: 'sendMessage', payload: { ...common, text: content.text } }
}

/** The call that replaces the text and the buttons of a message that this bot sent. @throws SendError */
export function renderEdit(provider: string, id: string, content: OutgoingContent): ApiCall {
  const [, chat, message] = /^(-?\d+):(\d+)$/.exec(id) ?? []
  if (chat === undefined || content.text === undefined || content.text === '') {
    throw new SendError('Only the text of a message can be edited, by the id that its send returned.', {
      provider,
      outcome: 'final',
    })
  }
  return {
    method: 'editMessageText',
    payload: {
      chat_id: Number(chat),
      message_id: Number(message),
      text: content.text,
      ...keyboardOf(provider, content),
    },
  }
}

export function renderTyping(to: SendTarget): ApiCall {
  return { method: 'sendChatAction', payload: { ...addressOf(to.chatId), action: 'typing' } }
}

/** `-100123#45` is topic 45 of chat -100123; a name such as `@shop` stays a name. */
function addressOf(chatId: string): { chat_id: number | string; message_thread_id?: number } {
  const [, chat, topic] = /^(-?\d+)(?:#(\d+))?$/.exec(chatId) ?? []
  if (chat === undefined) return { chat_id: chatId }
  return { chat_id: Number(chat), ...(topic === undefined ? {} : { message_thread_id: Number(topic) }) }
}

/** A callback or a reaction cannot be quoted: then nothing is. */
function quoteOf(replyTo: string | undefined): object {
  const [, message] = /^-?\d+:(\d+)(?::e\d+)?$/.exec(replyTo ?? '') ?? []
  return message === undefined
    ? {}
    : { reply_parameters: { message_id: Number(message), allow_sending_without_reply: true } }
}

function keyboardOf(provider: string, content: OutgoingContent): object {
  const choices: readonly Button[] =
    content.list?.sections
      .flatMap((section) => section.rows)
      .map((row) => ({ id: row.id, text: row.title })) ??
    content.buttons ??
    []
  if (choices.length === 0) return {}
  const keys = choices.map((choice) => {
    if (Buffer.byteLength(choice.id) > CALLBACK_DATA_BYTES || choice.id === '') {
      throw new SendError(
        `The id of the button "${choice.text}" has ${Buffer.byteLength(choice.id)} bytes: Telegram takes 1 to ${CALLBACK_DATA_BYTES}.`,
        { provider, outcome: 'final' },
      )
    }
    return { text: choice.text, callback_data: choice.id }
  })
  const perRow =
    content.list === undefined && choices.every((choice) => choice.text.length <= SHORT_LABEL_CHARS)
      ? BUTTONS_PER_ROW
      : 1
  const rows: (typeof keys)[] = []
  for (let at = 0; at < keys.length; at += perRow) rows.push(keys.slice(at, at + perRow))
  return { reply_markup: { inline_keyboard: rows } }
}

type OutgoingMedia = NonNullable<OutgoingContent['media']>

function renderMedia(
  provider: string,
  content: OutgoingContent,
  media: OutgoingMedia,
  common: Record<string, unknown>,
): ApiCall {
  const { method, field } = mediaMethod(media)
  const caption = media.caption ?? content.text
  const captioned = media.kind !== 'sticker' && caption !== undefined && caption !== ''
  return {
    method,
    payload: { ...common, [field]: fileOf(provider, media), ...(captioned ? { caption } : {}) },
  }
}

function mediaMethod(media: OutgoingMedia): { method: string; field: string } {
  switch (media.kind) {
    case 'image':
      return { method: 'sendPhoto', field: 'photo' }
    case 'video':
      return { method: 'sendVideo', field: 'video' }
    case 'audio':
      // Opus in OGG is shown as a voice message, all else as music.
      return media.mimeType?.startsWith('audio/ogg') === true
        ? { method: 'sendVoice', field: 'voice' }
        : { method: 'sendAudio', field: 'audio' }
    case 'document':
      return { method: 'sendDocument', field: 'document' }
    case 'sticker':
      return { method: 'sendSticker', field: 'sticker' }
  }
}

function fileOf(provider: string, media: OutgoingMedia): string | InputFile {
  const reference = media.id ?? media.url
  if (reference !== undefined) return reference
  if (media.data !== undefined) return new InputFile(media.data, media.fileName ?? media.kind)
  throw new SendError('The media has no content: give it an id, a url or data.', {
    provider,
    outcome: 'final',
  })
}
