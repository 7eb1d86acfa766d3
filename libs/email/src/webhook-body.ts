/**
 * Who calls the webhook, and where the mail is in what was sent. The services that take mail in differ in how they
 * pass it on: as the body itself, as a field of a form, in JSON, or in the JSON of a notification.
 */
import { equalInConstantTime, headerOf, readJsonBody, type WebhookRequest } from '@botmesh/core'
import { z } from 'zod'

export type WebhookMail =
  | { kind: 'mail'; raw: Uint8Array }
  | { kind: 'ignored'; reason: string }
  | { kind: 'refused'; reason: string }

/** Names of the field that has the mail: Mailgun's, SendGrid's, and plain ones. */
const FIELDS = ['body-mime', 'email', 'raw', 'mime', 'content'] as const

const withContent = z.object(
  Object.fromEntries(FIELDS.map((name) => [name, z.string().optional()])) as Record<
    (typeof FIELDS)[number],
    z.ZodOptional<z.ZodString>
  >,
)
const notification = z.object({ Type: z.string(), Message: z.string().optional() })

/** True if the request carries the secret: as a bearer token, a Basic password, a header of its own, or in the query. */
export function isAuthorised(request: WebhookRequest, secret: string): boolean {
  const authorization = headerOf(request, 'authorization') ?? ''
  const [, scheme, credentials] = /^(bearer|basic)\s+(\S+)\s*$/i.exec(authorization) ?? []
  const given =
    credentials === undefined
      ? (headerOf(request, 'x-webhook-secret') ?? request.query['secret'])
      : scheme!.toLowerCase() === 'bearer'
        ? credentials
        : passwordIn(credentials)
  return given !== undefined && equalInConstantTime(given, secret)
}

export async function mailInBody(request: WebhookRequest): Promise<WebhookMail> {
  const type = headerOf(request, 'content-type') ?? 'message/rfc822'
  if (/^application\/json\b|\+json\b/i.test(type) || isNotification(request))
    return mailInJson(request.rawBody)
  if (/^(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(type)) {
    return mailInForm(type, request.rawBody)
  }
  return { kind: 'mail', raw: request.rawBody }
}

/** Amazon SNS sends its JSON as text/plain. */
function isNotification(request: WebhookRequest): boolean {
  return headerOf(request, 'x-amz-sns-message-type') !== undefined
}

function mailInJson(body: Uint8Array): WebhookMail {
  const json = readJsonBody(body)
  if (!json.ok) return { kind: 'refused', reason: 'body is not JSON' }
  const outer = notification.safeParse(json.value)
  if (!outer.success) return contentOf(json.value)
  if (outer.data.Type !== 'Notification' || outer.data.Message === undefined) {
    return { kind: 'ignored', reason: `a message of type ${outer.data.Type.slice(0, 40)}` }
  }
  const inner = readJsonBody(Buffer.from(outer.data.Message))
  return inner.ok ? contentOf(inner.value) : { kind: 'ignored', reason: 'a notification without a mail' }
}

function contentOf(value: unknown): WebhookMail {
  const read = withContent.safeParse(value)
  const content = read.success
    ? FIELDS.map((name) => read.data[name]).find((one) => one !== undefined)
    : undefined
  if (content === undefined) return { kind: 'ignored', reason: 'an event without a mail' }
  // A mail begins with a header, which has a colon; base64 never has one.
  const isBase64 = !content.slice(0, 1000).includes(':')
  return { kind: 'mail', raw: Buffer.from(content, isBase64 ? 'base64' : 'utf8') }
}

async function mailInForm(type: string, body: Uint8Array): Promise<WebhookMail> {
  try {
    const form = await new Response(Buffer.from(body), { headers: { 'content-type': type } }).formData()
    for (const name of FIELDS) {
      const field = form.get(name)
      if (typeof field === 'string') return { kind: 'mail', raw: Buffer.from(field) }
      if (field !== null) return { kind: 'mail', raw: new Uint8Array(await field.arrayBuffer()) }
    }
    return { kind: 'ignored', reason: 'a form without a mail' }
  } catch {
    return { kind: 'refused', reason: 'body is not a form' }
  }
}

function passwordIn(credentials: string): string {
  const pair = Buffer.from(credentials, 'base64').toString()
  return pair.slice(pair.indexOf(':') + 1)
}
