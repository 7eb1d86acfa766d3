/**
 * Files on their way in: bounded in size, type, number and rate before the first byte is taken, and in time after it.
 * What a page claims (name, type) is only cleaned; nobody looks into the content.
 */
import type { Clock, Media, Timer } from '@botmesh/core'
import type { FileFrame, NackReason } from './protocol.js'
import { RateLimit } from './rate-limit.js'

export interface FileLimits {
  maxBytes: number
  /** Lower case; `image/*` is every image. */
  types: readonly string[]
  burst: number
  perMinute: number
  maxUploads: number
  maxPerMinute: number
  keepMs: number
}

export interface Refusal {
  reason: NackReason
  retryAfterMs?: number
  maxBytes?: number
}

const BUSY_RETRY_MS = 3000
/** A page that sends nothing for this long, or is not done after `WHOLE_MS`, is cut off and may begin anew. */
const PIECE_MS = 30_000
const WHOLE_MS = 300_000

/** All uploads of one replica: what they hold in memory is at most `maxUploads` times `maxBytes`. */
export class Uploads {
  private open = 0
  private readonly rate: RateLimit

  constructor(
    readonly limits: FileLimits,
    readonly chunkBytes: number,
    private readonly clock: Clock,
  ) {
    this.rate = new RateLimit(limits.maxPerMinute, limits.maxPerMinute)
  }

  /** @param visitorRate of the visitor; @param onTimeout the page was too slow, once. */
  begin(frame: FileFrame, visitorRate: RateLimit, onTimeout: () => void): Upload | Refusal {
    const { maxBytes, types, maxUploads } = this.limits
    if (frame.size === 0) return { reason: 'file-empty' }
    if (frame.size > maxBytes) return { reason: 'file-size', maxBytes }
    if (!isAccepted(frame.type, types)) return { reason: 'file-type' }
    if (this.open >= maxUploads) return { reason: 'busy', retryAfterMs: BUSY_RETRY_MS }
    const now = this.clock.monotonic()
    const waitMs = visitorRate.take(now) || this.rate.take(now)
    if (waitMs > 0) return { reason: 'rate', retryAfterMs: waitMs }
    this.open += 1
    return new Upload(frame, this.chunkBytes, this.clock, onTimeout, () => (this.open -= 1))
  }
}

export class Upload {
  private readonly chunks: Buffer[] = []
  private got = 0
  private ended = false
  private pieceTimer: Timer | undefined
  private readonly wholeTimer: Timer

  constructor(
    readonly frame: FileFrame,
    private readonly chunkBytes: number,
    private readonly clock: Clock,
    private readonly onTimeout: () => void,
    private readonly onEnd: () => void,
  ) {
    this.wholeTimer = clock.setTimeout(() => this.cutOff(), WHOLE_MS, { background: true })
    this.watch()
  }

  get received(): number {
    return this.got
  }

  get isWhole(): boolean {
    return this.got === this.frame.size
  }

  /** Every chunk is full but the last, so that small ones cannot be a flood. @returns false for any other. */
  take(chunk: Buffer): boolean {
    if (this.isWhole || chunk.length !== Math.min(this.chunkBytes, this.frame.size - this.got)) return false
    // A copy: the socket's buffer may be a slice of something larger.
    this.chunks.push(Buffer.from(chunk))
    this.got += chunk.length
    if (this.isWhole) this.quiet()
    else this.watch()
    return true
  }

  /** The content, once. */
  content(): Buffer {
    return Buffer.concat(this.chunks.splice(0))
  }

  /** Gives its place free, whether it was accepted or not. Idempotent. */
  end(): void {
    if (this.ended) return
    this.ended = true
    this.quiet()
    this.chunks.length = 0
    this.onEnd()
  }

  private watch(): void {
    this.pieceTimer?.cancel()
    this.pieceTimer = this.clock.setTimeout(() => this.cutOff(), PIECE_MS, { background: true })
  }

  private cutOff(): void {
    this.quiet()
    this.onTimeout()
  }

  private quiet(): void {
    this.pieceTimer?.cancel()
    this.wholeTimer.cancel()
  }
}

function isAccepted(type: string, types: readonly string[]): boolean {
  return types.some((one) => one === type || (one.endsWith('/*') && type.startsWith(one.slice(0, -1))))
}

/** SVG is a document, since it can hold scripts. */
export function kindOf(mimeType: string): Media['kind'] {
  const kind = mimeType.slice(0, mimeType.indexOf('/'))
  if (mimeType === 'image/svg+xml') return 'document'
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}

const MAX_NAME_BYTES = 200
// Control, format (text direction, zero width) and private signs, lone surrogates; what file systems reserve.
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*]/gu
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i

/** A name that is safe to show and to save under: no folders, no reserved signs or names, not hidden, at most 200 bytes. */
export function safeFileName(given: string): string {
  const last = given.normalize('NFC').split(/[/\\]/).at(-1) ?? ''
  const name = last
    .replace(UNSAFE, '')
    .replace(/\s+/g, ' ')
    .replace(/^[.\s]+|[.\s]+$/g, '')
    .replace(DEVICE, '_$1')
  if (name === '') return 'file'
  const ending = /\.\w{1,10}$/.exec(name)?.[0] ?? ''
  const signs = Array.from(name.slice(0, name.length - ending.length))
  while (Buffer.byteLength(signs.join('') + ending) > MAX_NAME_BYTES) signs.pop()
  return signs.join('') + ending
}
