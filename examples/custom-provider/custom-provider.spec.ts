/** The transport keeps its contract, against a gateway that this test plays; a bot answers through it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { MemoryStore, type WebhookRequest } from '@botmesh/core'
import { providerSuite, type ProviderBed } from '@botmesh/core/testing'
import { waitFor } from '../../test/support/index.js'
import { createBot } from '../plain-bot/bot.js'
import { SmsProvider } from './sms.provider.js'

const SECRET = 'known to the gateway'

function call(body: string, secret = SECRET): WebhookRequest {
  return { method: 'POST', headers: { 'x-secret': secret }, query: {}, rawBody: Buffer.from(body) }
}

async function bed(): Promise<ProviderBed> {
  const received: string[] = []
  let next: 'take' | 'refuse' | 'lose' = 'take'
  const gateway = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const act = next
      next = 'take'
      if (act === 'refuse') return response.writeHead(422).end()
      received.push((JSON.parse(body) as { text: string }).text)
      if (act === 'lose') return response.destroy()
      return response.writeHead(200).end(JSON.stringify({ id: `out-${received.length}` }))
    })
  })
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve))
  const { port } = gateway.address() as AddressInfo
  const provider = new SmsProvider({
    account: 'shop',
    gateway: `http://127.0.0.1:${port}`,
    secret: SECRET,
  })
  let count = 0
  const written = (text: string) =>
    call(JSON.stringify({ event: 'message', id: `in-${(count += 1)}`, from: '34600', text }))
  return {
    provider,
    connections: () => 0,
    userWrites: async (text) => void (await provider.handle(written(text))),
    received: () => received,
    refuseNextSend: () => (next = 'refuse'),
    loseNextAnswer: () => (next = 'lose'),
    requests: {
      unsigned: () => call('{}', 'another'),
      notJson: () => call('not JSON'),
      tooLarge: () => call(`{"text":"${'x'.repeat(70_000)}"}`),
      unknownEvent: () => call('{"event":"balance"}'),
      good: () => written('good'),
    },
    secrets: [SECRET],
    close: () => {
      gateway.closeAllConnections()
      return new Promise((resolve) => gateway.close(() => resolve()))
    },
  }
}

// --- conformance
providerSuite(
  { describe, it, expect },
  {
    name: 'SMS gateway',
    guarantees: { connects: false, refusesSends: true, losesAnswers: true, webhook: true },
    bed,
  },
)
// --- end

describe('examples: a transport of one’s own', () => {
  it('B4: a bot answers through it', async () => {
    const gateway = await bed()
    const bot = createBot({ provider: gateway.provider, store: new MemoryStore() })
    await bot.start()
    await gateway.userWrites('order')
    await waitFor(() => gateway.received().length > 0, { what: 'the answer' })
    expect(gateway.received()).toEqual(['Which size?'])
    await bot.stop()
    await gateway.close()
  })
})
