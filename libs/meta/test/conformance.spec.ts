/** The rules that every transport keeps, checked on WhatsApp against the double. */
import { describe, expect, it } from '@jest/globals'
import { MetaProvider } from '@botmesh/meta'
import { providerSuite } from '@botmesh/core/testing'
import type { WebhookRequest } from '@botmesh/core'
import { GraphApiDouble, metaText, metaWebhookBody, signMetaBody } from '../../../test/doubles/graph-api.js'
import { PHONE_NUMBER_ID } from './samples.js'

const SECRET = 'app-secret'

function signed(body: string, signature = signMetaBody(body, SECRET)): WebhookRequest {
  return {
    method: 'POST',
    headers: { 'x-hub-signature-256': signature },
    query: {},
    rawBody: Buffer.from(body),
  }
}

async function bed() {
  const graph = await new GraphApiDouble().listen()
  const provider = new MetaProvider({
    account: 'shop',
    phoneNumberId: PHONE_NUMBER_ID,
    accessToken: 'EAAtoken',
    appSecret: SECRET,
    verifyToken: 'verify',
    graphUrl: graph.url,
    maxBodyBytes: 4096,
  })
  let serial = 0
  let closed = false
  let delivered: Promise<unknown> = Promise.resolve()
  const write = (body: string) =>
    signed(metaWebhookBody(PHONE_NUMBER_ID, [metaText('34600111222', `wamid.${++serial}`, body)]))
  /** As Meta does: one body after the other, again and again until it is taken. */
  const deliver = async (request: WebhookRequest) => {
    while (!closed && (await provider.handle(request)).status !== 200) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return {
    provider,
    connections: () => 0,
    userWrites: async (body: string) => {
      const request = write(body)
      delivered = delivered.then(() => deliver(request))
    },
    received: () => graph.sends.map((send) => (send.body['text'] as { body: string }).body),
    refuseNextSend: () => graph.failNext({ kind: 'error', status: 400, code: 131026 }),
    limitNextSend: (retryAfterMs: number) =>
      graph.failNext({
        kind: 'error',
        status: 429,
        code: 130429,
        headers: { 'retry-after': String(retryAfterMs / 1000) },
      }),
    loseNextAnswer: () => graph.failNext({ kind: 'lost-answer' }),
    requests: {
      unsigned: () => signed('{}', ''),
      notJson: () => signed('{'),
      tooLarge: () => signed(' '.repeat(4097)),
      unknownEvent: () => signed(JSON.stringify({ object: 'page', entry: [] })),
      good: () => write('hola'),
    },
    close: async () => {
      closed = true
      await delivered
      await graph.close()
    },
  }
}

providerSuite(
  { describe, it, expect },
  {
    name: 'WhatsApp Cloud API',
    guarantees: {
      connects: false,
      refusesSends: true,
      redelivers: true,
      limitsSends: true,
      losesAnswers: true,
      webhook: true,
    },
    bed,
  },
)
