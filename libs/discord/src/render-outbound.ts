/**
 * Neutral messages → bodies of Discord's "create message". Pure: the calls are made elsewhere. One neutral message may
 * become several, when its text is longer than Discord takes.
 */
import { SendError, type Button, type OutgoingContent } from '@botmesh/core'
import type { RawFile } from 'discord.js'

export interface RenderedMessage {
  body: Record<string, unknown>
  files: RawFile[]
}

export interface RenderLimits {
  longText: 'split' | 'refuse'
  maxFileBytes: number
}

const TEXT_CHARS = 2000
const LABEL_CHARS = 80
const ID_CHARS = 100
const BUTTONS_PER_ROW = 5
const ROWS = 5
const LIST_ROWS = 25
const LIST_TEXT_CHARS = 100
const PLACEHOLDER_CHARS = 150
/** `custom_id` of the menu that a list becomes; what is chosen carries its own id. */
const LIST_ID = 'botmesh:list'
const ACTION_ROW = 1
const BUTTON = 2
const SELECT = 3
const SECONDARY = 2

/** Fields of `content.platform` that a message may carry; the rest is refused by name. */
const PLATFORM_FIELDS = ['embeds', 'components', 'allowed_mentions', 'flags', 'tts', 'poll', 'sticker_ids']

/** Users may be pinged by what the bot says, everyone and roles only if `platform.allowed_mentions` says so. */
const CAREFUL_MENTIONS = { parse: ['users'], replied_user: true }

/** @throws SendError `final` for content that says nothing, or that Discord is known to refuse. */
export function renderOutbound(
  provider: string,
  content: OutgoingContent,
  limits: RenderLimits,
): RenderedMessage[] {
  const refuse = (message: string): never => {
    throw new SendError(message, { provider, outcome: 'final' })
  }
  const platform = platformOf(content, refuse)
  const { text, embeds, files } = bodyOf(content, limits, refuse)
  const components = componentsOf(content, refuse)
  const saysMore = Object.keys(platform).some((key) => SAYS.has(key))
  if (text === '' && embeds.length === 0 && files.length === 0 && !saysMore) refuseEmpty(content, refuse)
  const parts = splitText(text)
  if (parts.length > 1 && limits.longText === 'refuse') {
    refuse(
      `The text has ${text.length} characters, Discord takes ${TEXT_CHARS}: shorten it, or set longText: 'split'.`,
    )
  }
  // What hangs on a message hangs on the last of its parts, below all of its text.
  const attached = {
    ...(embeds.length === 0 ? {} : { embeds }),
    ...(components.length === 0 ? {} : { components }),
    ...platform,
  }
  return parts.map((part, index) => {
    const last = index === parts.length - 1
    const body = {
      allowed_mentions: CAREFUL_MENTIONS,
      ...(part === '' ? {} : { content: part }),
      ...(index === 0 ? quoteOf(content.replyTo) : {}),
      ...(last ? attached : {}),
    }
    return { body, files: last ? files : [] }
  })
}

function refuseEmpty(content: OutgoingContent, refuse: Refuse): never {
  return refuse(
    content.template === undefined
      ? 'The message is empty: give it text, media or platform.embeds (buttons and lists need a text over them).'
      : 'Discord has no templates: send text.',
  )
}

const SAYS = new Set(['embeds', 'components', 'poll', 'sticker_ids'])

type Refuse = (message: string) => never

function platformOf(content: OutgoingContent, refuse: Refuse): Readonly<Record<string, unknown>> {
  const platform = content.platform ?? {}
  const unknown = Object.keys(platform).find((key) => !PLATFORM_FIELDS.includes(key))
  if (unknown !== undefined) {
    return refuse(`platform.${unknown} is not sent; Discord's fields here: ${PLATFORM_FIELDS.join(', ')}.`)
  }
  return platform
}

function bodyOf(
  content: OutgoingContent,
  limits: RenderLimits,
  refuse: Refuse,
): { text: string; embeds: object[]; files: RawFile[] } {
  const { media } = content
  if (media === undefined) return { text: content.text ?? '', embeds: [], files: [] }
  const text = media.caption ?? content.text ?? ''
  if (media.data !== undefined) {
    if (media.data.byteLength > limits.maxFileBytes) {
      refuse(
        `The file has ${media.data.byteLength} bytes, the limit is ${limits.maxFileBytes}: send a smaller one or a link; if the server is boosted, raise maxFileBytes.`,
      )
    }
    return { text, embeds: [], files: [fileOf(media, media.data)] }
  }
  // Discord shows pictures of others in an embed, and players of its own for links to sound and video.
  if (media.url !== undefined) {
    return media.kind === 'image'
      ? { text, embeds: [{ image: { url: media.url } }], files: [] }
      : { text: [text, media.url].filter(Boolean).join('\n'), embeds: [], files: [] }
  }
  return refuse(
    media.id === undefined
      ? 'The media has no content: give it data or a url.'
      : 'Discord does not send files again by their id: give the media data or a url.',
  )
}

function fileOf(media: NonNullable<OutgoingContent['media']>, data: Uint8Array): RawFile {
  return {
    name: media.fileName ?? `${media.kind}.${extensionOf(media.mimeType, media.kind)}`,
    data: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
    ...(media.mimeType === undefined ? {} : { contentType: media.mimeType }),
  }
}

/** Discord shows a file by the ending of its name. */
function extensionOf(mimeType: string | undefined, kind: string): string {
  const subtype = /^\w+\/(?:x-)?([a-z0-9]+)/.exec(mimeType ?? '')?.[1]
  if (subtype !== undefined) return subtype === 'jpeg' ? 'jpg' : subtype
  return { image: 'png', audio: 'mp3', video: 'mp4', sticker: 'png' }[kind] ?? 'bin'
}

/** A command or a button cannot be quoted: then nothing is. */
function quoteOf(replyTo: string | undefined): object {
  const [, id] = /^(\d+)(?::\d+)?$/.exec(replyTo ?? '') ?? []
  return id === undefined ? {} : { message_reference: { message_id: id, fail_if_not_exists: false } }
}

function componentsOf(content: OutgoingContent, refuse: Refuse): object[] {
  if (content.list !== undefined) return [menuOf(content.list, refuse)]
  const buttons = content.buttons ?? []
  if (buttons.length > BUTTONS_PER_ROW * ROWS) {
    refuse(
      `The message has ${buttons.length} buttons, Discord takes ${BUTTONS_PER_ROW * ROWS}: send a list, or fewer.`,
    )
  }
  const rows: object[] = []
  for (let at = 0; at < buttons.length; at += BUTTONS_PER_ROW) {
    const row = buttons.slice(at, at + BUTTONS_PER_ROW).map((button) => buttonOf(button, refuse))
    rows.push({ type: ACTION_ROW, components: row })
  }
  return rows
}

function buttonOf({ id, text }: Button, refuse: Refuse): object {
  checkId(`button "${text}"`, id, refuse)
  return { type: BUTTON, style: SECONDARY, custom_id: id, label: cut(text, LABEL_CHARS) }
}

function menuOf(list: NonNullable<OutgoingContent['list']>, refuse: Refuse): object {
  const rows = list.sections.flatMap((section) => section.rows)
  if (rows.length === 0 || rows.length > LIST_ROWS) {
    refuse(
      `The list has ${rows.length} rows, Discord takes 1 to ${LIST_ROWS}: split it over several messages.`,
    )
  }
  const options = rows.map((row) => {
    checkId(`row "${row.title}"`, row.id, refuse)
    const description =
      row.description === undefined ? {} : { description: cut(row.description, LIST_TEXT_CHARS) }
    return { value: row.id, label: cut(row.title, LIST_TEXT_CHARS), ...description }
  })
  const menu = {
    type: SELECT,
    custom_id: LIST_ID,
    placeholder: cut(list.button, PLACEHOLDER_CHARS),
    options,
  }
  return { type: ACTION_ROW, components: [menu] }
}

function checkId(what: string, id: string, refuse: Refuse): void {
  if (id !== '' && id.length <= ID_CHARS) return
  refuse(`The id of the ${what} has ${id.length} characters: Discord takes 1 to ${ID_CHARS}.`)
}

function cut(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 1)}…`
}

/** Parts of at most 2000 characters, broken at the end of a line or a word if there is one in the last fifth. */
function splitText(text: string): string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > TEXT_CHARS) {
    const head = rest.slice(0, TEXT_CHARS)
    const at = [head.lastIndexOf('\n'), head.lastIndexOf(' ')].find((one) => one > TEXT_CHARS * 0.8)
    const end = at ?? (isHighSurrogate(head) ? TEXT_CHARS - 1 : TEXT_CHARS)
    parts.push(rest.slice(0, end))
    rest = rest.slice(at === undefined ? end : end + 1)
  }
  return rest === '' && parts.length > 0 ? parts : [...parts, rest]
}

function isHighSurrogate(text: string): boolean {
  return /[\uD800-\uDBFF]$/.test(text)
}
