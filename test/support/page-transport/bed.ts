/** The provider conformance suite's bed for Messenger and Instagram: the Graph API double plays the platform. */
import type { ProviderFixture } from '@botmesh/core/testing'
import { GraphApiDouble } from '../../doubles/graph-api.js'
import { optionsFor, post, TOKEN, textsFrom, type PageFixture } from './fixture.js'

export function pageConformance(fixture: PageFixture): ProviderFixture {
  return {
    name: fixture.name,
    guarantees: {
      connects: false,
      refusesSends: true,
      redelivers: true,
      limitsSends: true,
      losesAnswers: true,
      webhook: true,
    },
    bed: () => openBed(fixture),
  }
}

async function openBed(fixture: PageFixture) {
  const graph = await new GraphApiDouble({ accessToken: TOKEN, rules: fixture.rules }).listen()
  const provider = fixture.make(optionsFor(graph.url, { maxBodyBytes: 4096 }))
  const [user] = fixture.users
  let serial = 0
  let closed = false
  let delivered: Promise<unknown> = Promise.resolve()
  const write = (body: string) => post(textsFrom(fixture, [[user, `m_${++serial}`, body]]))
  /** As Meta does: one body after the other, again and again until it is taken. */
  const deliver = async (request: ReturnType<typeof write>) => {
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
    received: () => graph.sends.map((send) => (send.body['message'] as { text: string }).text),
    refuseNextSend: () => graph.failNext({ kind: 'error', status: 400, code: 10, subcode: 2_018_278 }),
    limitNextSend: (retryAfterMs: number) =>
      graph.failNext({
        kind: 'error',
        status: 429,
        code: 613,
        headers: { 'retry-after': String(retryAfterMs / 1000) },
      }),
    loseNextAnswer: () => graph.failNext({ kind: 'lost-answer' }),
    requests: {
      unsigned: () => post('{}', ''),
      notJson: () => post('{'),
      tooLarge: () => post(' '.repeat(4097)),
      unknownEvent: () => post(fixture.samples.text('referral')),
      good: () => write('hola'),
    },
    close: async () => {
      closed = true
      await delivered
      await graph.close()
    },
  }
}
