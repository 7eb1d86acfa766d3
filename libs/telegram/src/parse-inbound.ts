/**
 * Telegram updates → neutral messages. Pure. Lenient: what is malformed, unknown or not for this bot becomes an
 * `ignored` event with its reason.
 *
 * Ids: Telegram numbers messages per chat, so a message's id here is `<chat>:<message>`; a callback's is
 * `cb:<callback>`. A forum topic is a chat of its own: `<chat>#<topic>`.
 */
import type { Button, Media, Message } from '@botmesh/core'
import {
  readCallback,
  readMessage,
  readReaction,
  type ParsedChat,
  type ParsedFile,
  type ParsedKeyboard,
  type ParsedMessage,
  type ParsedUser,
} from './update-schema.js'

export type TelegramEvent =
  { kind: 'message'; message: Message; callbackId?: string } | { kind: 'ignored'; reason: string }

export interface InboundContext {
  botId: number
  /** The bot's name, if known yet: commands for other bots of a group are ignored. */
  username?: string
  edits: 'ignore' | 'deliver'
}

/** Writes for a group's administrators who stay anonymous; they are told apart by `sender_chat`. */
const ANONYMOUS_ADMINISTRATOR = 1087968824

/** @returns undefined if the update has no number: it is none of Telegram's. */
export function updateIdOf(update: unknown): number | undefined {
  const { update_id: id } = (update ?? {}) as { update_id?: unknown }
  return typeof id === 'number' && Number.isSafeInteger(id) ? id : undefined
}

/** True for a command with an addressee (`/cancel@tienda_bot`): whose it is depends on the bot's name. */
export function isAddressed(update: unknown): boolean {
  const { message, edited_message: edited } = (update ?? {}) as Record<string, { text?: unknown } | null>
  const text = message?.text ?? edited?.text
  return typeof text === 'string' && /^\/\w+@/.test(text)
}

/** The event of one update. Never throws. @param receivedAt for what Telegram does not date (button presses). */
export function parseInbound(update: unknown, context: InboundContext, receivedAt = 0): TelegramEvent {
  const fields = (typeof update === 'object' && update !== null ? update : {}) as Record<string, unknown>
  if (fields['message'] !== undefined) return parseMessage(fields['message'], context, undefined)
  if (fields['edited_message'] !== undefined) {
    if (context.edits === 'ignore') return ignored('a corrected message')
    return parseMessage(fields['edited_message'], context, updateIdOf(update))
  }
  if (fields['callback_query'] !== undefined)
    return parseCallback(fields['callback_query'], context, receivedAt)
  if (fields['message_reaction'] !== undefined) {
    return parseReaction(fields['message_reaction'], context, updateIdOf(update))
  }
  const kind = Object.keys(fields).find((key) => key !== 'update_id') ?? 'none'
  return ignored(`update type "${kind.slice(0, 40)}"`)
}

function parseMessage(raw: unknown, context: InboundContext, editId: number | undefined): TelegramEvent {
  const source = readMessage(raw)
  if (source === undefined) return ignored('malformed message')
  const writer = writerOf(source.from, source.sender_chat?.id, context)
  if (typeof writer === 'string') return ignored(writer)
  if (source.is_automatic_forward === true) return ignored('forwarded by its channel')
  const content = contentOf(source, context)
  if (typeof content === 'string') return ignored(content)
  const chatId = source.chat.id
  const original = `${chatId}:${source.message_id}`
  const id = editId === undefined ? original : `${original}:e${editId}`
  const sentAt = editId === undefined ? source.date : (source.edit_date ?? source.date)
  const { type, body, media, buttons } = content
  const message = messageOf({ id, timestamp: sentAt * 1000, type, body, raw }, source.chat, source, writer)
  if (media !== undefined) message.media = media
  if (buttons !== undefined) message.buttons = buttons
  if (editId !== undefined) message.editOf = original
  const quoted = source.reply_to_message?.message_id
  // In a topic, what answers nothing "answers" the topic's first message.
  if (quoted !== undefined && quoted !== source.message_thread_id) message.quotedId = `${chatId}:${quoted}`
  return { kind: 'message', message }
}

function parseCallback(raw: unknown, context: InboundContext, receivedAt: number): TelegramEvent {
  const source = readCallback(raw)
  if (source === undefined) return ignored('malformed callback')
  const { id, from, data, message } = source
  if (data === undefined || message === undefined) return ignored('a callback of an inline message or a game')
  const writer = writerOf(from, undefined, context)
  if (typeof writer === 'string') return ignored(writer)
  const pressed = buttonsOf(message.reply_markup)?.find((button) => button.id === data)
  const body = pressed?.text ?? data
  const content = { id: `cb:${id}`, timestamp: receivedAt, type: 'button' as const, body, raw }
  const pressing = messageOf(content, message.chat, message, writer)
  pressing.buttonId = data
  pressing.quotedId = `${message.chat.id}:${message.message_id}`
  return { kind: 'message', callbackId: id, message: pressing }
}

function parseReaction(raw: unknown, context: InboundContext, updateId: number | undefined): TelegramEvent {
  const source = readReaction(raw)
  if (source === undefined) return ignored('malformed reaction')
  const { chat, message_id: messageId, user, date, new_reaction: reactions } = source
  const writer = writerOf(user, undefined, context)
  if (typeof writer === 'string') return ignored(writer)
  const quotedId = `${chat.id}:${messageId}`
  const id = `${quotedId}:r${updateId ?? date}`
  // Empty: the reaction was taken back.
  const body = reactions.at(-1)?.emoji ?? ''
  const content = { id, timestamp: date * 1000, type: 'reaction' as const, body, raw }
  const message = messageOf(content, chat, {}, writer)
  message.quotedId = quotedId
  return { kind: 'message', message }
}

interface Writer {
  id: string
  name: string
  lang: string | undefined
}

/** Who wrote, or why it is none of ours to answer. */
function writerOf(
  from: ParsedUser | undefined,
  senderChatId: number | undefined,
  context: InboundContext,
): Writer | string {
  if (from === undefined) return 'nobody wrote it'
  if (from.id === context.botId) return 'written by this bot'
  const anonymous = from.id === ANONYMOUS_ADMINISTRATOR && senderChatId !== undefined
  if (from.is_bot === true && !anonymous) return 'written by another bot'
  const { first_name: first = '', last_name: last = '' } = from
  return {
    id: String(anonymous ? senderChatId : from.id),
    name: first === '' || last === '' ? first + last : `${first} ${last}`,
    lang: from.language_code,
  }
}

interface Topic {
  is_topic_message?: boolean | undefined
  message_thread_id?: number | undefined
}

/** What all messages have in common. */
function messageOf(
  { id, timestamp, type, body, raw }: Pick<Message, 'id' | 'timestamp' | 'type' | 'body' | 'raw'>,
  chat: ParsedChat,
  topic: Topic,
  writer: Writer,
): Message {
  const inTopic = topic.is_topic_message === true && topic.message_thread_id !== undefined
  const chatId = inTopic ? `${chat.id}#${topic.message_thread_id}` : String(chat.id)
  const isGroup = chat.type !== 'private'
  const message: Message = { id, chatId, from: writer.id, isGroup, timestamp, type, body, raw }
  if (writer.name !== '') message.fromName = writer.name
  if (writer.lang !== undefined) message.lang = writer.lang
  if (isGroup) message.participant = writer.id
  return message
}

type Content = Pick<Message, 'type' | 'body'> & Partial<Pick<Message, 'media' | 'buttons'>>

/** @returns a reason if there is nothing to answer. */
function contentOf(source: ParsedMessage, context: InboundContext): Content | string {
  const buttons = buttonsOf(source.reply_markup)
  if (source.text !== undefined) {
    const command = source.entities?.find((entity) => entity.type === 'bot_command' && entity.offset === 0)
    if (command !== undefined) return commandOf(source.text, command.length, context)
    const content: Content = { type: 'text', body: source.text }
    if (buttons !== undefined) content.buttons = buttons
    return content
  }
  const media = mediaOf(source)
  if (media !== undefined) return { type: 'media', body: source.caption ?? '', media }
  if (source.location !== undefined) {
    const { latitude, longitude } = source.location
    const lines = [source.venue?.title, source.venue?.address, `${latitude},${longitude}`]
    return { type: 'location', body: lines.filter(Boolean).join('\n') }
  }
  if (source.contact !== undefined) {
    const { first_name: first, last_name: last, phone_number: phone } = source.contact
    return { type: 'contact', body: [first, last, phone].filter(Boolean).join(' ') }
  }
  if (source.poll !== undefined) return { type: 'other', body: source.poll.question }
  if (source.dice !== undefined) return { type: 'other', body: `${source.dice.emoji} ${source.dice.value}` }
  return 'a service message'
}

/** `/cancel@tienda_bot now` → `/cancel now`, unless it is for another bot. */
function commandOf(text: string, length: number, context: InboundContext): Content | string {
  const [command = '', addressee] = text.slice(0, length).split('@')
  if (
    addressee !== undefined &&
    context.username !== undefined &&
    addressee.toLowerCase() !== context.username.toLowerCase()
  ) {
    return 'a command for another bot'
  }
  return { type: 'command', body: command + text.slice(length) }
}

function mediaOf(source: ParsedMessage): Media | undefined {
  if (source.photo !== undefined && source.photo.length > 0)
    return fileOf('image', source.photo.at(-1)!, source)
  // An animation comes with a document of the same file, for old clients: it goes first.
  const video = source.animation ?? source.video ?? source.video_note
  if (video !== undefined) return fileOf('video', video, source)
  const audio = source.voice ?? source.audio
  if (audio !== undefined) return fileOf('audio', audio, source)
  if (source.sticker !== undefined) return fileOf('sticker', source.sticker, source)
  return source.document && fileOf('document', source.document, source)
}

function fileOf(kind: Media['kind'], file: ParsedFile, { caption }: ParsedMessage): Media {
  const media: Media = { kind, id: file.file_id }
  if (file.mime_type !== undefined) media.mimeType = file.mime_type
  if (file.file_name !== undefined) media.fileName = file.file_name
  if (file.file_size !== undefined) media.sizeBytes = file.file_size
  if (caption !== undefined) media.caption = caption
  return media
}

function buttonsOf(markup: ParsedKeyboard | undefined): Button[] | undefined {
  return markup?.inline_keyboard
    .flat()
    .flatMap((button) =>
      button.callback_data === undefined ? [] : [{ id: button.callback_data, text: button.text }],
    )
}

function ignored(reason: string): TelegramEvent {
  return { kind: 'ignored', reason }
}
