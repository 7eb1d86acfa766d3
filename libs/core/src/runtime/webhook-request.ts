/**
 * What every webhook transport must check before it trusts a request: size, secret, form. Kept in one place so
 * that no provider gets the constant time or the bound wrong (scenario 25).
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { WebhookRequest, WebhookResponse } from '../contracts/provider.js'

/** Compares without telling by its duration how much was right, or how long the right value is. */
export function equalInConstantTime(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}

/** One header's value; of a header that was sent several times, the first. @param name in lower case. */
export function headerOf(request: WebhookRequest, name: string): string | undefined {
  const value = request.headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** One for all bodies: making one takes as long as reading with it. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A body as JSON, or the answer to give instead: 400 if it is not JSON (an object, in valid UTF-8). */
export function readJsonBody(
  rawBody: Uint8Array,
): { ok: true; value: Record<string, unknown> } | { ok: false; response: WebhookResponse } {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(rawBody))
  } catch {
    return { ok: false, response: webhookAnswer(400, 'body is not JSON') }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, response: webhookAnswer(400, 'body is not a JSON object') }
  }
  return { ok: true, value: value as Record<string, unknown> }
}

/** A plain-text answer; 503 carries the Retry-After that platforms look at. */
export function webhookAnswer(
  status: number,
  body: string,
  headers: Record<string, string> = {},
): WebhookResponse {
  return {
    status,
    body,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      ...(status === 503 ? { 'retry-after': '1' } : {}),
      ...headers,
    },
  }
}
