/**
 * TLS that fails: whoever sits between a bot and its platform gets no request and no token, and the operator is told
 * what to do. E-mail has tests of its own (its certificates are options).
 */
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { SendError, type Provider } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { DiscordProvider } from '@botmesh/discord'
import { InstagramProvider } from '@botmesh/instagram'
import { MessengerProvider } from '@botmesh/messenger'
import { MetaProvider } from '@botmesh/meta'
import { TelegramProvider } from '@botmesh/telegram'
import { TOKEN as DISCORD_TOKEN } from '../doubles/discord/index.js'
import { UntrustedServer } from '../doubles/untrusted-server.js'

const SECRET = 'secretTokenOfTheTests'
const TELEGRAM_TOKEN = `123456789:AA${SECRET}`

let server: UntrustedServer
beforeAll(async () => {
  server = await UntrustedServer.listen()
})
afterAll(() => server.close())

const graph = () => ({
  accessToken: SECRET,
  appSecret: SECRET,
  verifyToken: SECRET,
  graphUrl: server.url,
})
const MADE: [name: string, make: () => Provider][] = [
  ['telegram', () => new TelegramProvider({ token: TELEGRAM_TOKEN, apiRoot: server.url })],
  ['discord', () => new DiscordProvider({ token: DISCORD_TOKEN, apiRoot: `${server.url}/api` })],
  ['meta', () => new MetaProvider({ ...graph(), phoneNumberId: '1065' })],
  ['messenger', () => new MessengerProvider({ ...graph(), pageId: '1148' })],
  ['instagram', () => new InstagramProvider({ ...graph(), accountId: '1784' })],
]

const ADVICE = /certificate is not trusted.*NODE_EXTRA_CA_CERTS/

describe('scenario 16: a certificate that is not trusted', () => {
  it.each(MADE)('%s: a send is retryable, says what to do, and nothing was sent', async (_name, make) => {
    const error = await make()
      .send({ chatId: '601001000000000001' }, { text: 'hola' })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SendError)
    expect(error).toMatchObject({ outcome: 'retryable', message: expect.stringMatching(ADVICE) })
    const said = inspect(error, { depth: 9, showHidden: true })
    expect([SECRET, DISCORD_TOKEN].filter((one) => said.includes(one))).toEqual([])
    expect(server.requests).toBe(0)
  })

  it.each(MADE.slice(0, 2))('P3: %s: its connection stays closed, and says why', async (_name, make) => {
    const provider = make()
    const sink = new RecordingSink()
    await provider.start(sink, new AbortController().signal)
    await sink.until(() => provider.state.status === 'closed')
    expect(provider.state).toMatchObject({ reason: expect.stringMatching(ADVICE) })
    await provider.stop()
    const said = inspect([sink.logs, sink.states, sink.errors], { depth: 9, showHidden: true })
    expect([SECRET, DISCORD_TOKEN].filter((one) => said.includes(one))).toEqual([])
    expect(server.requests).toBe(0)
  })
})
