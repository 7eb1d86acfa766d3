/** Reads multipart forms as clients write them; Node's own reader refuses those of grammY. For doubles only. */
import type { IncomingMessage } from 'node:http'

/** The fields of a form, and what files it carries. */
export function formOf(
  request: IncomingMessage,
  raw: Buffer,
): { payload: Record<string, unknown>; files: { name: string; bytes: number }[] } {
  const [, boundary = ''] = /boundary=([^;]+)/.exec(request.headers['content-type'] ?? '') ?? []
  const payload: Record<string, unknown> = {}
  const files: { name: string; bytes: number }[] = []
  for (const part of raw.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
    const at = part.indexOf('\r\n\r\n')
    const head = Buffer.from(part.slice(0, at), 'latin1').toString()
    const body = Buffer.from(part.slice(at + 4).replace(/\r\n$/, ''), 'latin1')
    const [, name = ''] = /[ ;]name="?([^";\r]+)/i.exec(head) ?? []
    const [, file] = /filename="?([^";\r]+)/i.exec(head) ?? []
    if (file === undefined) payload[name] = body.toString()
    else files.push({ name: file, bytes: body.byteLength })
  }
  return { payload, files }
}
