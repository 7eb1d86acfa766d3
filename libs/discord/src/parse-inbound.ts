/**
 * Discord's events → neutral messages. Pure. Lenient: what is malformed, unknown or not for this bot becomes an
 * `ignored` event with its reason.
 *
 * A chat is a channel: a server's channel, a thread (each thread is one of its own), or a direct message. Ids of
 * messages are Discord's, unique everywhere; a command or a button has the id of its interaction, `interaction:<id>`.
 */
import type { Button, Media, Message } from '@botmesh/core'
import {
  readInteraction,
  readMessage,
  type ParsedAttachment,
  type ParsedComponent,
  type ParsedInteraction,
  type ParsedMember,
  type ParsedMessage,
  type ParsedOption,
  type ParsedUser,
} from './payload-schema.js'

/** A command or a button, which Discord wants acknowledged within 3 s. */
export interface PendingInteraction {
  /** The id of its message here. */
  messageId: string
  id: string
  applicationId: string
  /** A secret: whoever has it answers in the bot's name for 15 minutes. */
  token: string
  chatId: string
  kind: 'command' | 'component'
}

export type DiscordEvent =
  /** More than one message: one with several attachments. Never empty. */
  | { kind: 'messages'; messages: Message[]; interaction?: PendingInteraction }
  | { kind: 'ignored'; reason: string }

export interface InboundContext {
  botId: string
  /** In servers: all messages, or only those that mention the bot or answer it. */
  listen: 'all' | 'mentions'
  /** Messages of other bots and webhooks. */
  bots: 'ignore' | 'deliver'
}

/** Of Discord's message types only these two are written by somebody; the others tell of joins, pins, boosts, …. */
const WRITTEN_TYPES = new Set([0, 19])
const COMMAND = 2
const COMPONENT = 3
const BUTTON = 2
const SELECT_TYPES = new Set([3, 5, 6, 7, 8])
const ATTACHMENT_OPTION = 11
const GROUP_DM = 3
const VOID_IDS = 4_194_304

/** The event of one dispatch of the gateway. Never throws. @param type such as `MESSAGE_CREATE`. @param data its `d`. */
export function parseInbound(type: unknown, data: unknown, context: InboundContext): DiscordEvent {
  switch (type) {
    case 'MESSAGE_CREATE':
      return parseMessage(data, context)
    case 'INTERACTION_CREATE':
      return parseInteraction(data, context)
    default:
      return ignored(`event "${String(type).slice(0, 40)}"`)
  }
}

/** When an id was made, in milliseconds since the epoch. */
function timeOf(id: string): number {
  return Math.floor(Number(id) / VOID_IDS) + 1_420_070_400_000
}

function parseMessage(raw: unknown, context: InboundContext): DiscordEvent {
  const source = readMessage(raw)
  if (source === undefined) return ignored('malformed message')
  if (source.author.id === context.botId) return ignored('written by this bot')
  if (source.webhook_id !== undefined && context.bots === 'ignore') return ignored('written by a webhook')
  if (source.author.bot === true && context.bots === 'ignore') return ignored('written by another bot')
  if (!WRITTEN_TYPES.has(source.type)) return ignored(`a service message (type ${source.type})`)
  const isGroup = source.guild_id !== undefined
  if (isGroup && context.listen === 'mentions' && !addresses(source, context.botId)) {
    return ignored('it does not mention this bot')
  }
  const contents = contentsOf(source, context)
  if (contents.length === 0) return ignored('it has no content (is the Message Content intent on?)')
  const sentAt = Date.parse(source.timestamp)
  const timestamp = Number.isNaN(sentAt) ? timeOf(source.id) : sentAt
  const from = source.author.id
  const fromName = nameOf(source.author, source.member)
  const quotedId = quotedBy(source)
  const messages = contents.map(({ type, body, media, buttons }, index) => {
    const id = index === 0 ? source.id : `${source.id}:${index + 1}`
    const message: Message = { id, chatId: source.channel_id, from, isGroup, timestamp, type, body, raw }
    if (fromName !== undefined) message.fromName = fromName
    if (isGroup) message.participant = from
    if (media !== undefined) message.media = media
    if (buttons !== undefined) message.buttons = buttons
    if (quotedId !== undefined) message.quotedId = quotedId
    return message
  })
  return { kind: 'messages', messages }
}

/** Of an answer. A forwarded message (type 1) refers to another one, too. */
function quotedBy({ message_reference: to }: ParsedMessage): string | undefined {
  return to && (to.type ?? 0) === 0 ? to.message_id : undefined
}

/** True if the bot is mentioned, or one of its messages answered. */
function addresses(source: ParsedMessage, botId: string): boolean {
  return mentions(source, botId) || source.referenced_message?.author?.id === botId
}

function mentions(source: ParsedMessage, botId: string): boolean {
  return source.mentions?.some((user) => user.id === botId) === true
}

type Content = Pick<Message, 'type' | 'body'> & Partial<Pick<Message, 'media' | 'buttons'>>

/** One content for each message that it becomes: a neutral message carries one file. */
function contentsOf(source: ParsedMessage, context: InboundContext): Content[] {
  const body = readable(source, context.botId)
  const files = filesOf(source)
  if (files.length > 0) {
    return files.map((media, index) => {
      const caption = index === 0 ? body : ''
      if (caption !== '') media.caption = caption
      return { type: 'media', body: caption, media }
    })
  }
  if (body !== '' || mentions(source, context.botId)) {
    const buttons = source.components === undefined ? [] : buttonsOf(source.components)
    return [buttons.length === 0 ? { type: 'text', body } : { type: 'text', body, buttons }]
  }
  return source.poll ? [{ type: 'other', body: source.poll.question.text }] : []
}

function filesOf({ attachments = [], sticker_items: stickers = [] }: ParsedMessage): Media[] {
  const files = attachments.map(mediaOf)
  for (const { id, name } of stickers) {
    files.push(name === undefined ? { kind: 'sticker', id } : { kind: 'sticker', id, fileName: name })
  }
  return files
}

/** The mention that a text begins with, and what stands between it and the words. */
const FIRST_MENTION = /^\s*<@!?(\d+)>[\s,:]*/

/** Without the mention of the bot that it begins with, and with names for the ids of the people it mentions. */
function readable({ content = '', mentions: people = [] }: ParsedMessage, botId: string): string {
  if (!content.includes('<@')) return content
  const first = FIRST_MENTION.exec(content)
  const text = first?.[1] === botId ? content.slice(first[0].length) : content
  if (!text.includes('<@')) return text
  const names = new Map(people.map((user) => [user.id, nameOf(user, user.member)]))
  return text.replace(/<@!?(\d+)>/g, (mention, id: string) => {
    const name = names.get(id)
    return name === undefined ? mention : `@${name}`
  })
}

function mediaOf(file: ParsedAttachment): Media {
  const mimeType = file.content_type ?? undefined
  const media: Media = { kind: kindOf(mimeType), id: file.id }
  if (mimeType !== undefined) media.mimeType = mimeType
  if (file.filename !== undefined) media.fileName = file.filename
  if (file.size !== undefined) media.sizeBytes = file.size
  if (file.url !== undefined) media.url = file.url
  return media
}

function kindOf(mimeType = ''): Media['kind'] {
  const end = mimeType.indexOf('/')
  const family = end === -1 ? mimeType : mimeType.slice(0, end)
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document'
}

function parseInteraction(raw: unknown, context: InboundContext): DiscordEvent {
  const source = readInteraction(raw)
  if (source === undefined) return ignored('malformed interaction')
  const user = source.member?.user ?? source.user
  const chatId = source.channel_id ?? source.channel?.id
  if (user === undefined || chatId === undefined) return ignored('an interaction without a user or a channel')
  if (user.bot === true && context.bots === 'ignore') return ignored('an interaction of another bot')
  const content = source.type === COMMAND ? commandOf(source) : componentOf(source)
  if (content === undefined) return ignored(`interaction type ${source.type}`)
  const isGroup = source.guild_id !== undefined || source.channel?.type === GROUP_DM
  const messageId = `interaction:${source.id}`
  const { type, body, media, buttonId, quotedId } = content
  const from = user.id
  const timestamp = timeOf(source.id)
  const message: Message = { id: messageId, chatId, from, isGroup, timestamp, type, body, raw }
  const fromName = nameOf(user, source.member)
  if (fromName !== undefined) message.fromName = fromName
  if (isGroup) message.participant = from
  if (source.locale !== undefined) message.lang = source.locale
  if (media !== undefined) message.media = media
  if (buttonId !== undefined) message.buttonId = buttonId
  if (quotedId !== undefined) message.quotedId = quotedId
  const interaction: PendingInteraction = {
    messageId,
    id: source.id,
    applicationId: source.application_id,
    token: source.token,
    chatId,
    kind: source.type === COMMAND ? 'command' : 'component',
  }
  return { kind: 'messages', messages: [message], interaction }
}

type InteractionContent = Pick<Message, 'type' | 'body'> &
  Partial<Pick<Message, 'media' | 'buttonId' | 'quotedId'>>

/** `/pedido talla:M` → `/pedido M`: names of groups and values in the order that the user gave them. */
function commandOf({ data }: ParsedInteraction): InteractionContent | undefined {
  if (data?.name === undefined) return undefined
  const words = [`/${data.name}`]
  let file: ParsedAttachment | undefined
  const walk = (options: readonly ParsedOption[]): void => {
    for (const option of options) {
      if (option.value === undefined) words.push(option.name)
      else if (option.type === ATTACHMENT_OPTION) file ??= data.resolved?.attachments?.[String(option.value)]
      else words.push(String(option.value))
      walk(option.options ?? [])
    }
  }
  walk(data.options ?? [])
  if (data.target_id !== undefined) words.push(data.target_id)
  const content: InteractionContent = { type: 'command', body: words.join(' ') }
  if (file !== undefined) content.media = mediaOf(file)
  return content
}

function componentOf({ type, data, message }: ParsedInteraction): InteractionContent | undefined {
  if (type !== COMPONENT || data?.custom_id === undefined) return undefined
  const chosen = data.values?.[0]
  const of = message?.components && componentNamed(data.custom_id, message.components)
  const label =
    chosen === undefined ? of?.label : of?.options?.find((option) => option.value === chosen)?.label
  const body = label ?? chosen ?? data.custom_id
  const content: InteractionContent = { type: 'button', body, buttonId: chosen ?? data.custom_id }
  if (message !== undefined) content.quotedId = message.id
  return content
}

/** The first of that id, wherever it stands. */
function componentNamed(
  customId: string,
  components: readonly ParsedComponent[],
): ParsedComponent | undefined {
  for (const one of components) {
    const found =
      one.custom_id === customId ? one : one.components && componentNamed(customId, one.components)
    if (found !== undefined) return found
  }
  return undefined
}

/** In the order in which they are read. @param buttons to which they are added. */
function buttonsOf(components: readonly ParsedComponent[], buttons: Button[] = []): Button[] {
  for (const { type, custom_id: id, label = '', options = [], components: inside } of components) {
    if (SELECT_TYPES.has(type)) {
      for (const option of options) buttons.push({ id: option.value, text: option.label })
    } else if (type === BUTTON && id !== undefined) buttons.push({ id, text: label })
    if (inside !== undefined) buttonsOf(inside, buttons)
  }
  return buttons
}

function nameOf(user: ParsedUser, member: ParsedMember): string | undefined {
  return member?.nick ?? user.global_name ?? user.username
}

function ignored(reason: string): DiscordEvent {
  return { kind: 'ignored', reason }
}
