/** Requests and answers as `node:http` has them: what every framework's are built on. */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The path without query and trailing slash, and the query's first value per name. */
export function targetOf(request: IncomingMessage): { path: string; query: Record<string, string> } {
  // Express takes a mount path off `url`; `originalUrl` keeps it.
  const { originalUrl } = request as IncomingMessage & { originalUrl?: string }
  const target = originalUrl ?? request.url ?? '/'
  const url = URL.canParse(target, 'http://host') ? new URL(target, 'http://host') : new URL('http://host/')
  const query: Record<string, string> = {}
  for (const [name, value] of url.searchParams) query[name] ??= value
  return { path: url.pathname.length > 1 ? url.pathname.replace(/\/+$/, '') : url.pathname, query }
}

export interface Answer {
  status: number
  headers?: Record<string, string>
  body?: string | Uint8Array
}

/** Writes the whole answer; without a body for HEAD. Does nothing if the client has gone. */
export function writeAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(answer.status, answer.headers)
  response.end(request.method === 'HEAD' ? undefined : answer.body)
}

export type Body = { bytes: Uint8Array } | { refused: 'too-large' | 'aborted' | 'consumed' }

/**
 * Reads the raw body, at most `maxBytes`. A body that something earlier has read is taken from `rawBody` where Nest
 * kept it, else refused as consumed.
 */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Body> {
  const { rawBody } = request as IncomingMessage & { rawBody?: unknown }
  if (rawBody instanceof Uint8Array)
    return rawBody.byteLength > maxBytes ? { refused: 'too-large' } : { bytes: rawBody }
  if (request.readableEnded) return { refused: 'consumed' }
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return { refused: 'too-large' }
  const chunks: Buffer[] = []
  let size = 0
  try {
    // Not `for await (… of request)`: leaving that loop would cut the connection before the refusal is written.
    const parts = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer | string>
    for await (const chunk of parts) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      size += bytes.byteLength
      if (size > maxBytes) return { refused: 'too-large' }
      chunks.push(bytes)
    }
  } catch {
    // The client broke off; it will deliver again if it cares.
    return { refused: 'aborted' }
  }
  return { bytes: Buffer.concat(chunks) }
}

/** What is read and thrown away of a body that was refused for its size. */
const DISCARDED_BYTES = 32 * 1024 * 1024

/**
 * Lets a client finish what it is sending, so that it reads the refusal: an answer followed by a close would reset
 * the connection while it still writes, and many clients report that instead. Resolves when the body is over, or too
 * long to be worth it. Never rejects.
 */
export async function discardRest(request: IncomingMessage): Promise<void> {
  let left = DISCARDED_BYTES
  if (Number(request.headers['content-length'] ?? 0) > left) return
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<
      Buffer | string
    >) {
      left -= chunk.length
      if (left < 0) return
    }
  } catch {
    // It broke off: nobody waits for the answer any more.
  }
}
