/**
 * What page and server say to each other: JSON text frames over one WebSocket.
 *
 * Page → server: `hello` first (with the signed visitor and the last entry seen), then `msg`, `file` and `ping`.
 * Server → page: `welcome`, then any order of
 * - `ack` / `nack` of a `msg` by its `cid`: taken over for good, or "not now, try again in `retryAfterMs`";
 * - `msg`: one entry of the visitor's log, in log order. `seq` is its place (send the last one in the next
 *   `hello`); `id` tells copies: an entry whose `id` was shown already is the same message once more;
 * - `go` (after `file`: send the content now, as binary frames of `chunkBytes`, the last one shorter), `got` (bytes of
 *   it so far), and once it is whole `ack` or `nack` as for `msg`. One file at a time on a socket; `file-stop` gives
 *   it up, and so does closing the socket; a resend starts from the beginning, under the same `cid`;
 * - `typing`, `pong`, and `error` (a close follows).
 */
import { z } from 'zod'

export const PROTOCOL_VERSION = 1

/** Close codes of our own; the page starts as a new visitor after `badSignature` and stops after `outdated`. */
export const CLOSE = {
  goingAway: 1001,
  malformed: 4400,
  badSignature: 4401,
  /** No hello, or an upload that stands still. */
  helloTimeout: 4408,
  outdated: 4426,
  tooManyFrames: 4429,
} as const

const hello = z.object({
  t: z.literal('hello'),
  v: z.number().int(),
  visitor: z
    .object({ id: z.string().regex(/^[A-Za-z0-9_-]{22}$/), sig: z.string().max(100) })
    .nullish()
    .transform((visitor) => visitor ?? undefined),
  after: z
    .string()
    .regex(/^[\w.:-]{1,80}$/)
    .nullish()
    .transform((after) => after ?? null),
  lang: z
    .string()
    .max(35)
    .regex(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/)
    .nullish()
    .transform((lang) => lang ?? undefined),
})

/** The page's id of the message: the same on every attempt, so the dedupe id. */
const cid = z.string().regex(/^[\w-]{8,64}$/)

const message = z.object({
  t: z.literal('msg'),
  cid,
  text: z.string().refine((text) => text.trim() !== '', 'empty'),
  buttonId: z.string().min(1).max(256).optional(),
  replyTo: z.string().min(1).max(300).optional(),
})

const file = z.object({
  t: z.literal('file'),
  cid,
  name: z.string().max(1000),
  /** What the browser thinks it is; empty if it has no idea. */
  type: z
    .string()
    .max(127)
    .regex(/^([\w.+-]+\/[\w.+-]+)?$/)
    .transform((type) => (type === '' ? 'application/octet-stream' : type.toLowerCase())),
  size: z.number().int().nonnegative(),
})

const frame = z.discriminatedUnion('t', [
  hello,
  message,
  file,
  z.object({ t: z.literal('file-stop'), cid }),
  z.object({ t: z.literal('ping') }),
])

export type HelloFrame = z.infer<typeof hello>
export type MessageFrame = z.infer<typeof message>
export type FileFrame = z.infer<typeof file>
export type PageFrame = z.infer<typeof frame>

/** @returns null for anything that is not a frame of this protocol. */
export function parseFrame(text: string): PageFrame | null {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return null
  }
  const parsed = frame.safeParse(json)
  return parsed.success ? parsed.data : null
}

/** What the log holds, as JSON: a message of the bot, or the echo of one of the visitor's for other tabs. */
export interface LoggedMessage {
  v: 1
  from: 'bot' | 'visitor'
  /** The same for copies of one message; absent: the entry's own id tells. */
  id?: string
  /** Milliseconds since the epoch, by the replica that wrote it. */
  at: number
  text?: string
  buttons?: { id: string; text: string }[]
  list?: {
    button: string
    sections: { title?: string; rows: { id: string; title: string; description?: string }[] }[]
  }
  media?: { kind: string; url: string; mimeType?: string; fileName?: string; caption?: string }
  /** A file that the visitor sent; its content is not for pages. */
  file?: { name: string; sizeBytes: number; mimeType: string }
  replyTo?: string
}

/** `busy` and `rate` come with `retryAfterMs`; the others are for good. */
export type NackReason = 'busy' | 'rate' | 'too-long' | 'file-size' | 'file-type' | 'file-empty' | 'files-off'

export type ServerFrame =
  | {
      t: 'welcome'
      v: number
      visitor: { id: string; sig: string }
      known: boolean
      /** Absent: files are not taken. */
      files?: { maxBytes: number; types: readonly string[] }
    }
  | { t: 'go'; cid: string; chunkBytes: number }
  | { t: 'got'; cid: string; bytes: number }
  | { t: 'ack'; cid: string }
  | { t: 'nack'; cid: string; reason: NackReason; retryAfterMs?: number; maxBytes?: number }
  | ({ t: 'msg'; seq: string; id: string } & Omit<LoggedMessage, 'v' | 'id'>)
  | { t: 'typing' }
  | { t: 'pong' }
  | { t: 'error'; code: 'malformed' | 'signature' | 'outdated' | 'rate' }
