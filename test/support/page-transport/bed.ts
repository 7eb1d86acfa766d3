/** The provider conformance suite's bed for transports on the Graph API: the double plays the platform. */
import type { Provider, WebhookRequest } from '@botmesh/core'
import type { ProviderFixture } from '@botmesh/core/testing'
import { GraphApiDouble, type GraphFault } from '../../doubles/graph-api.js'
import { optionsFor, post, TOKEN, textsFrom, type PageFixture } from './fixture.js'

/** What the transports on the Graph API have not in common. */
export interface GraphBedParts {
  graph: GraphApiDouble
  provider: Provider & { handle(request: WebhookRequest): Promise<{ status: number }> }
  /** The call that brings a text of a user. */
  write(body: string, serial: number): WebhookRequest
  unknownEvent(): WebhookRequest
  /** Signs a body. */
  post(body: string, signature?: string): WebhookRequest
  textOf(body: Record<string, unknown>): string
  /** How the platform refuses for good, and for now. */
  refusal: Omit<GraphFault & { kind: 'error' }, 'kind' | 'status'>
  limit: number
}

export function graphConformance(name: string, open: () => Promise<GraphBedParts>): ProviderFixture {
  return {
    name,
    guarantees: {
      connects: false,
      refusesSends: true,
      redelivers: true,
      limitsSends: true,
      losesAnswers: true,
      webhook: true,
    },
    bed: async () => bedOf(await open()),
  }
}

export function pageConformance(fixture: PageFixture): ProviderFixture {
  return graphConformance(fixture.name, async () => {
    const graph = await new GraphApiDouble({ accessToken: TOKEN, rules: fixture.rules }).listen()
    return {
      graph,
      provider: fixture.make(optionsFor(graph.url, { maxBodyBytes: 4096 })),
      write: (body, serial) => post(textsFrom(fixture, [[fixture.users[0], `m_${serial}`, body]])),
      unknownEvent: () => post(fixture.samples.text('referral')),
      post,
      textOf: (body) => (body['message'] as { text: string }).text,
      refusal: { code: 10, subcode: 2_018_278 },
      limit: 613,
    }
  })
}

function bedOf({ graph, provider, ...parts }: GraphBedParts) {
  let serial = 0
  let closed = false
  let delivered: Promise<unknown> = Promise.resolve()
  const write = (body: string) => parts.write(body, ++serial)
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
    received: () => graph.sends.map((send) => parts.textOf(send.body)),
    refuseNextSend: () => graph.failNext({ kind: 'error', status: 400, ...parts.refusal }),
    limitNextSend: (retryAfterMs: number) =>
      graph.failNext({
        kind: 'error',
        status: 429,
        code: parts.limit,
        headers: { 'retry-after': String(retryAfterMs / 1000) },
      }),
    loseNextAnswer: () => graph.failNext({ kind: 'lost-answer' }),
    requests: {
      unsigned: () => parts.post('{}', ''),
      notJson: () => parts.post('{'),
      tooLarge: () => parts.post(' '.repeat(4097)),
      unknownEvent: () => parts.unknownEvent(),
      good: () => write('hola'),
    },
    close: async () => {
      closed = true
      await delivered
      await graph.close()
    },
  }
}
