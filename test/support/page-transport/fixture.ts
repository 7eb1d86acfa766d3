/** What the shared suites need to know of a transport for Messenger or Instagram. */
import { readdirSync, readFileSync } from 'node:fs'
import type { WebhookRequest } from '@botmesh/core'
import type { PageOptions, PageProvider } from '@botmesh/meta/page'
import { pageText, pageWebhookBody, signMetaBody } from '../../doubles/graph-api.js'
import type { PageRules } from '../../doubles/page-rules.js'

export const SECRET = 'app-secret-of-the-tests'
export const TOKEN = 'EAAsecretTokenOfTheTests'
export const VERIFY = 'verify-me'

export interface PageFixture {
  name: string
  /** First part of the provider's id. */
  kind: string
  make(options: PageOptions): PageProvider
  /** `object` of its webhooks. */
  object: string
  accountId: string
  /** Who writes in the samples, and a second one. */
  users: readonly [string, string]
  rules: PageRules
  samples: Samples
  /** The sample of a read event. */
  readSample: string
}

export interface Samples {
  names: readonly string[]
  text(name: string): string
  json(name: string): unknown
}

/** The sample payloads of a package. @param specUrl of a spec in its test folder. */
export function samplesBeside(specUrl: string): Samples {
  const folder = new URL('../src/sample-messages/', specUrl)
  const text = (name: string) => readFileSync(new URL(`${name}.json`, folder), 'utf8')
  return {
    names: readdirSync(folder).map((file) => file.replace(/\.json$/, '')),
    text,
    json: (name) => JSON.parse(text(name)),
  }
}

export function optionsFor(graphUrl: string, more: Partial<PageOptions> = {}): PageOptions {
  return {
    account: 'shop',
    accessToken: TOKEN,
    appSecret: SECRET,
    verifyToken: VERIFY,
    graphUrl,
    maxBodyBytes: 64 * 1024,
    ...more,
  }
}

export function post(
  rawBody: string | Uint8Array,
  signature = signMetaBody(rawBody, SECRET),
): WebhookRequest {
  return {
    method: 'POST',
    headers: signature === '' ? {} : { 'x-hub-signature-256': signature },
    query: {},
    rawBody: typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody,
  }
}

/** A webhook call with texts of users: `[user, id, text]`. */
export function textsFrom(
  fixture: PageFixture,
  texts: readonly (readonly [string, string, string])[],
): string {
  const { object, accountId } = fixture
  return pageWebhookBody(
    object,
    accountId,
    texts.map(([user, id, text]) => pageText(user, accountId, id, text)),
  )
}
