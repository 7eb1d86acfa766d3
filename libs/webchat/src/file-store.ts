/**
 * Files of visitors, in the message log: a channel of its own for each, in numbered pieces, so that whichever replica
 * handles the message reads the content. The id holds the digest of the content, so pieces of two attempts of one
 * upload fit together, and what is read is what was sent, or nothing.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { MessageLog } from '@botmesh/core'

/** In base64 and JSON it stays under 64 KiB, the smallest text column of the stores. */
const PIECE_BYTES = 32 * 1024
const READ_LIMIT = 32

const piece = z.object({ v: z.literal(1), n: z.number().int(), of: z.number().int(), data: z.string() })
const ID = /^[\w-]{22}\.[\w-]{8,64}\.[\w-]{43}$/

/** Names the content of one upload: visitor, the page's id of the message, digest. */
export function fileId(visitorId: string, cid: string, bytes: Uint8Array): string {
  return `${visitorId}.${cid}.${digestOf(bytes)}`
}

export class FileStore {
  constructor(
    private readonly account: string,
    private readonly keepMs: number,
  ) {}

  /** Idempotent: appends only what is missing. Rejects if the log did not confirm a piece; then write again. */
  async write(log: MessageLog, id: string, bytes: Uint8Array): Promise<void> {
    const of = Math.ceil(bytes.byteLength / PIECE_BYTES)
    const there = await this.pieces(log, id)
    const channel = this.channelOf(id)
    for (let n = 0; n < of; n++) {
      if (there.has(n)) continue
      const data = Buffer.from(bytes.subarray(n * PIECE_BYTES, (n + 1) * PIECE_BYTES)).toString('base64')
      // Room for copies: an append whose reply was lost is made again.
      const options = { keep: of * 2 + 8, ttlMs: this.keepMs }
      await log.append(channel, JSON.stringify({ v: 1, n, of, data }), options)
    }
  }

  /** @returns null if there is no such file, no longer, or not whole. Rejects if the log cannot be read. */
  async read(log: MessageLog, id: string): Promise<Uint8Array | null> {
    if (!ID.test(id)) return null
    const there = await this.pieces(log, id)
    const bytes = Buffer.concat([...there].sort(([one], [other]) => one - other).map(([, data]) => data))
    return digestOf(bytes) === id.slice(id.lastIndexOf('.') + 1) ? bytes : null
  }

  private async pieces(log: MessageLog, id: string): Promise<Map<number, Buffer>> {
    const found = new Map<number, Buffer>()
    let after: string | null = null
    for (;;) {
      const entries = await log.read(this.channelOf(id), after, READ_LIMIT)
      for (const entry of entries) {
        const { n, data } = piece.parse(JSON.parse(entry.payload))
        found.set(n, Buffer.from(data, 'base64'))
        after = entry.id
      }
      if (entries.length < READ_LIMIT) return found
    }
  }

  /** Hashed, because stores bound the length of a name. */
  private channelOf(id: string): string {
    return `webchat:${this.account}:file:${digestOf(Buffer.from(id))}`
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url')
}
