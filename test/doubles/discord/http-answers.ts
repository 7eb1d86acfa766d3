/** How the Discord double reads requests and words its answers: refusals, limits with their headers, forms. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readAll, replyJson } from '../http-double.js'

export interface UploadedFile {
  name: string
  bytes: number
}

export interface Answer {
  status: number
  json: object | null
}

export function refusal(status: number, code: number, message: string): Answer {
  return { status, json: { message, code } }
}

export function reply(response: ServerResponse, { status, json }: Answer): void {
  if (json === null) response.writeHead(status).end()
  else replyJson(response, status, json)
}

export function fail(response: ServerResponse, status: number, code: number, message: string): void {
  if (status >= 500) response.writeHead(status, { 'content-type': 'text/html' }).end('<html></html>')
  else replyJson(response, status, { message, code })
}

export function limit(
  response: ServerResponse,
  { retryAfterMs, global = false }: { retryAfterMs: number; global?: boolean },
): void {
  const seconds = retryAfterMs / 1000
  replyJson(
    response,
    429,
    { message: 'You are being rate limited.', retry_after: seconds, global },
    {
      'retry-after': String(Math.ceil(seconds)),
      'x-ratelimit-scope': global ? 'global' : 'user',
      ...(global
        ? { 'x-ratelimit-global': 'true' }
        : {
            'x-ratelimit-limit': '5',
            'x-ratelimit-remaining': '0',
            'x-ratelimit-reset-after': String(seconds),
            'x-ratelimit-bucket': 'messages',
          }),
    },
  )
}

/** JSON as it is; of a form its JSON part, and what each file is. */
export async function readBody(request: IncomingMessage): Promise<{ body: unknown; files: UploadedFile[] }> {
  const raw = await readAll(request)
  const type = request.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/')) {
    return { body: raw.length === 0 ? undefined : JSON.parse(raw.toString()), files: [] }
  }
  const form = await new Response(new Uint8Array(raw), { headers: { 'content-type': type } }).formData()
  const json = form.get('payload_json')
  const files = [...form.values()].flatMap((part) =>
    typeof part === 'string' ? [] : [{ name: part.name, bytes: part.size }],
  )
  return { body: typeof json === 'string' ? JSON.parse(json) : undefined, files }
}
