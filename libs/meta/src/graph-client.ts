/**
 * Calls of Meta's Graph API, shared by WhatsApp, Messenger and Instagram: one place for the deadline,
 * for the meaning of errors and for keeping the token out of every error and log.
 */
import {
  networkCodeOf,
  networkReasonOf,
  readBounded,
  SendError,
  wasNeverSent,
  type Clock,
} from '@botmesh/core'
import { z } from 'zod'
import { judgeGraphError, saysEnough } from './graph-errors.js'
import type { CommonSettings } from './graph-options.js'

export interface GraphSettings {
  /** For errors: whose call it was. */
  provider: string
  graphUrl: string
  apiVersion: string
  accessToken: string
  timeoutMs: number
}

export interface GraphCall {
  method: 'GET' | 'POST' | 'DELETE'
  /** Below the version, without a leading slash. */
  path: string
  body?: object | FormData
  /** True: the call has an effect that must not happen twice, so that an unknown fate is `uncertain`. */
  effect: boolean
  clock: Clock
}

const errorSchema = z.object({
  error: z.object({
    message: z.string().catch(''),
    code: z.number().optional().catch(undefined),
    error_subcode: z.number().optional().catch(undefined),
    is_transient: z.boolean().optional().catch(undefined),
    error_data: z.object({ details: z.string().optional() }).optional().catch(undefined),
  }),
})

/** Enough of a foreign text to understand it. */
const EXCERPT_CHARS = 300
/** More than any answer of the API has. */
const ANSWER_BYTES = 4 * 1024 * 1024
/** Files take longer than words. */
const FILE_TIMEOUT_FACTOR = 4

/** The client of one account. */
export function graphClientFor(settings: CommonSettings): GraphClient {
  const { id, graphUrl, apiVersion, accessToken, sendTimeoutMs } = settings
  return new GraphClient({ provider: id, graphUrl, apiVersion, accessToken, timeoutMs: sendTimeoutMs })
}

export class GraphClient {
  constructor(private readonly settings: GraphSettings) {}

  /**
   * One call. Never repeats by itself.
   * @returns the answer's JSON.
   * @throws SendError: `retryable` if the connection was refused or the platform said so, `final` if it never will,
   *   `uncertain` if the request of an effect was written and its answer is missing.
   */
  async call(call: GraphCall): Promise<unknown> {
    const { graphUrl, apiVersion } = this.settings
    const { response, content: text } = await this.exchange(
      `${graphUrl}/${apiVersion}/${call.path}`,
      call,
      this.settings.timeoutMs * (call.body instanceof FormData ? FILE_TIMEOUT_FACTOR : 1),
      async (answer) => new TextDecoder().decode((await readBounded(answer, ANSWER_BYTES)) ?? undefined),
    )
    const json = parseJson(text)
    if (!response.ok) throw this.refusal(call, response, json, text)
    if (json === undefined) {
      throw this.failure(call, `answered ${response.status} with something that is not JSON`)
    }
    return json
  }

  /**
   * Fetches a file that the platform holds. Bounded.
   * @param options.withToken false for links that carry their own right to read (Messenger's and Instagram's): the
   *   token is for the API's own hosts.
   * @throws SendError `final` if it is larger than `maxBytes` or gone.
   */
  async download(
    url: string,
    maxBytes: number,
    clock: Clock,
    options: { withToken: boolean } = { withToken: true },
  ): Promise<{ data: Uint8Array; mimeType?: string }> {
    const call: GraphCall = { method: 'GET', path: '(media file)', effect: false, clock }
    const limitMs = this.settings.timeoutMs * FILE_TIMEOUT_FACTOR
    const { response, content: data } = await this.exchange(
      url,
      call,
      limitMs,
      (answer) => readBounded(answer, maxBytes),
      options.withToken,
    )
    if (!response.ok) throw this.refusal(call, response, undefined, `HTTP ${response.status}`)
    if (data === null) {
      throw new SendError(`The file is larger than ${maxBytes} bytes: raise maxBytes to fetch it.`, {
        provider: this.settings.provider,
        outcome: 'final',
      })
    }
    const mimeType = response.headers.get('content-type')
    return { data, ...(mimeType === null ? {} : { mimeType }) }
  }

  private async exchange<T>(
    url: string,
    call: GraphCall,
    limitMs: number,
    read: (response: Response) => Promise<T>,
    withToken = true,
  ): Promise<{ response: Response; content: T }> {
    const deadline = new AbortController()
    const timer = call.clock.setTimeout(() => deadline.abort(), limitMs)
    try {
      const response = await fetch(url, {
        method: call.method,
        headers: this.headersFor(call.body, withToken),
        signal: deadline.signal,
        ...(call.body === undefined
          ? {}
          : { body: call.body instanceof FormData ? call.body : JSON.stringify(call.body) }),
      })
      return { response, content: await read(response) }
    } catch (error) {
      if (deadline.signal.aborted) throw this.failure(call, `no answer within ${limitMs} ms`)
      const why = networkReasonOf(error) ?? 'unknown'
      throw this.failure(call, `network failure (${why}) at ${new URL(url).host}`, error)
    } finally {
      timer.cancel()
    }
  }

  private headersFor(body: object | undefined, withToken: boolean): Record<string, string> {
    const headers: Record<string, string> = {}
    if (withToken) headers['authorization'] = `Bearer ${this.settings.accessToken}`
    if (body !== undefined && !(body instanceof FormData)) headers['content-type'] = 'application/json'
    return headers
  }

  private failure(call: GraphCall, what: string, cause?: unknown): SendError {
    const again = wasNeverSent(cause) || !call.effect
    return new SendError(
      `Graph API ${call.method} ${call.path}: ${what}${again ? '' : '; the platform may have acted on it'}.`,
      { provider: this.settings.provider, outcome: again ? 'retryable' : 'uncertain' },
      cause === undefined ? undefined : this.clean(cause),
    )
  }

  private refusal(call: GraphCall, response: Response, json: unknown, text: string): SendError {
    const parsed = errorSchema.safeParse(json)
    const error = parsed.success ? parsed.data.error : undefined
    const verdict = judgeGraphError({
      status: response.status,
      code: error?.code,
      subcode: error?.error_subcode,
      isTransient: error?.is_transient,
      retryAfterMs: askedPauseMs(response.headers),
    })
    const said = this.redact(
      [error?.message ?? text, error?.error_data?.details ?? ''].filter(Boolean).join(': '),
    )
    const code = platformCodeOf(error, response.status)
    return new SendError(
      `Graph API refused (${error?.code === undefined ? 'HTTP' : 'code'} ${code})${verdict.advice === '' ? '' : `: ${verdict.advice}`}. It said: ${said}`,
      {
        provider: this.settings.provider,
        // Without an effect it does not matter whether the call went through.
        outcome: verdict.outcome === 'uncertain' && !call.effect ? 'retryable' : verdict.outcome,
        platformCode: code,
        ...(verdict.retryAfterMs === undefined ? {} : { retryAfterMs: verdict.retryAfterMs }),
        ...(verdict.scope === undefined ? {} : { scope: verdict.scope }),
      },
    )
  }

  /** Meta quotes a malformed token in its own error text. */
  private redact(text: string): string {
    return text.replaceAll(this.settings.accessToken, '***').slice(0, EXCERPT_CHARS)
  }

  private clean(cause: unknown): Error {
    const text = cause instanceof Error ? cause.message : String(cause)
    return new Error(`${this.redact(text)} (${networkCodeOf(cause) ?? 'no code'})`)
  }
}

/** `code`, with `/subcode` where the code alone says too little; the HTTP status if the answer had neither. */
function platformCodeOf(
  error: { code?: number | undefined; error_subcode?: number | undefined } | undefined,
  status: number,
): string {
  if (error?.code === undefined) return String(status)
  return error.error_subcode === undefined || saysEnough(error.code)
    ? String(error.code)
    : `${error.code}/${error.error_subcode}`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `Retry-After` in seconds, or the minutes that the usage header of a business account names. */
function askedPauseMs(headers: Headers): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? NaN)
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1000
  const usage = parseJson(headers.get('x-business-use-case-usage') ?? '')
  if (typeof usage !== 'object' || usage === null) return undefined
  const minutes = Object.values(usage)
    .flat()
    .map((entry: unknown) =>
      Number((entry as Record<string, unknown> | null)?.['estimated_time_to_regain_access']),
    )
    .filter((value) => Number.isFinite(value) && value > 0)
  return minutes.length === 0 ? undefined : Math.max(...minutes) * 60_000
}
