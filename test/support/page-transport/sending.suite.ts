/** Sending to Messenger and Instagram against the double: what arrives, and what each failure means (scenario 16). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigError, LeaseLostError } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import type { PageProvider } from '@botmesh/meta/page'
import { GraphApiDouble, type GraphFault } from '../../doubles/graph-api.js'
import { everythingIn, failuresWithout } from './failures.js'
import { optionsFor, TOKEN, type PageFixture } from './fixture.js'

const failureOf = failuresWithout(TOKEN)

const refusal = (status: number, code: number, subcode?: number): GraphFault => ({
  kind: 'error',
  status,
  code,
  ...(subcode === undefined ? {} : { subcode }),
})

const ACCOUNT = { outcome: 'retryable', scope: 'account', retryAfterMs: 60_000 }
/** Refusals as the platform words them by code and subcode, and what they mean for the message. */
const REFUSALS: readonly [string, GraphFault, object, RegExp][] = [
  [
    'the window of 24 hours',
    refusal(403, 10, 2_018_278),
    { outcome: 'final', platformCode: '10/2018278' },
    /24 hours/,
  ],
  ['the same on Instagram', refusal(403, 10, 2_534_022), { outcome: 'final' }, /HUMAN_AGENT/],
  ['a permission', refusal(403, 10), { outcome: 'final', platformCode: '10' }, /permission/],
  ['an app in development', refusal(403, 200, 2_018_028), { outcome: 'final' }, /role/],
  ['token revoked', refusal(401, 190, 460), { outcome: 'final', platformCode: '190/460' }, /make a new one/],
  ['no such user', refusal(400, 100, 2_018_001), { outcome: 'final' }, /no matching user/],
  ['person unavailable', refusal(400, 551, 1_545_041), { outcome: 'final' }, /takes no messages/],
  ['blocked for abuse', refusal(403, 368), { outcome: 'final' }, /policy/],
  ['page restricted', refusal(403, 10, 1_893_063), { outcome: 'final' }, /support inbox/],
  ['file not fetched', refusal(400, 100, 2_018_008), { outcome: 'final' }, /public/],
  ['call limit', refusal(400, 613), ACCOUNT, /limit/],
  ['call limit of the app', refusal(400, 4), ACCOUNT, /hourly/],
  ['call limit of the page', refusal(400, 32), ACCOUNT, /page/],
  ['messages of the page', refusal(400, 80_006), ACCOUNT, /limit of messages/],
  ['failed for a moment', refusal(500, 1200), { outcome: 'retryable', retryAfterMs: 5_000 }, /moment/],
  ['its own answer lost', refusal(500, 1, 1_357_046), { outcome: 'uncertain' }, /lost its own answer/],
  ['a code nobody knows', refusal(400, 999_999), { outcome: 'final', platformCode: '999999' }, /999999/],
  [
    'a gateway',
    { kind: 'error', status: 502, text: '<html>' },
    { outcome: 'uncertain', platformCode: '502' },
    /HTTP 502/,
  ],
]

export function pageSendingSuite(fixture: PageFixture): void {
  const to = { chatId: fixture.users[0] }
  let graph: GraphApiDouble
  let provider: PageProvider

  beforeEach(async () => {
    graph = await new GraphApiDouble({ accessToken: TOKEN, rules: fixture.rules }).listen()
    provider = fixture.make(optionsFor(graph.url))
  })
  afterEach(() => graph.close())

  describe(`${fixture.name}: sending`, () => {
    it('text: one call to /me/messages with the token in a header, and the platform’s id comes back', async () => {
      const sent = await provider.send(to, { text: 'Hola' })
      expect(graph.sends).toHaveLength(1)
      expect(graph.requests).toEqual(['POST /v23.0/me/messages'])
      expect(graph.sends[0]).toMatchObject({
        id: sent.id,
        to: to.chatId,
        authorization: `Bearer ${TOKEN}`,
        body: { messaging_type: 'RESPONSE', message: { text: 'Hola' } },
      })
    })

    it('a long text arrives whole, in parts that the platform takes; the id is that of the last', async () => {
      const text = 'Ñandú, añejo y «ç» 🦩. '.repeat(150).trim()
      const sent = await provider.send(to, { text })
      expect(graph.sends.length).toBeGreaterThan(1)
      expect(sent.id).toBe(graph.sends.at(-1)!.id)
      const parts = graph.sends.map((send) => (send.body['message'] as { text: string }).text)
      expect(parts.join(' ')).toBe(text)
    })

    it('bytes are uploaded first and sent by id; too many are refused before the first byte', async () => {
      const data = new TextEncoder().encode('picture of the tests')
      await provider.send(to, { media: { kind: 'image', data, mimeType: 'image/png', caption: 'Azul' } })
      expect(graph.uploads).toHaveLength(1)
      expect(graph.uploads[0]!.form).toContain('picture of the tests')
      expect(graph.sends.map((send) => send.body['message'])).toEqual([
        { attachment: { type: 'image', payload: { attachment_id: graph.uploads[0]!.id } } },
        { text: 'Azul' },
      ])
      const large = new Uint8Array(26 * 1024 * 1024)
      const error = await failureOf(provider.send(to, { media: { kind: 'video', data: large } }))
      expect(error.message).toMatch(/video has 27262976 bytes, the platform takes 26214400/)
      expect(error.outcome).toBe('final')
      expect(graph.uploads).toHaveLength(1)
    })

    it('typing and read marks', async () => {
      await provider.typing(to)
      await provider.typing(to, { on: false })
      await provider.markRead(to)
      expect(graph.actions.map((action) => action.body)).toEqual(
        ['typing_on', 'typing_off', 'mark_seen'].map((sender_action) => ({
          recipient: { id: to.chatId },
          sender_action,
        })),
      )
    })

    it('downloads what a user sent, bounded, and without the token: the link is not of the API', async () => {
      graph.files.set('m1', { data: new Uint8Array(2000), mimeType: 'image/jpeg' })
      const url = `${graph.url}/files/m1`
      const got = await provider.download({ url })
      expect(got).toMatchObject({ mimeType: 'image/jpeg' })
      expect(got.data.byteLength).toBe(2000)
      expect(graph.fileTokens).toEqual([undefined])
      expect((await failureOf(provider.download({ url }, { maxBytes: 1000 }))).outcome).toBe('final')
      await expect(provider.download({})).rejects.toThrow(ConfigError)
      await expect(provider.download({ url: 'file:///etc/passwd' })).rejects.toThrow(ConfigError)
    })

    it('K4: makes no request once its turn is lost, nor the second part of a message', async () => {
      const lost = new LeaseLostError('shop/1', 'expired')
      await expect(provider.send(to, { text: 'late' }, { signal: AbortSignal.abort(lost) })).rejects.toBe(
        lost,
      )
      expect(graph.requests).toEqual([])
      const during = new AbortController()
      const sending = provider.send(
        to,
        { text: 'y esto', media: { kind: 'image', url: 'https://shop.example/a.jpg' } },
        { signal: during.signal },
      )
      await graph.waitForSends(1)
      during.abort(lost)
      await expect(sending).rejects.toBe(lost)
      expect(graph.sends).toHaveLength(1)
    })
  })

  describe(`${fixture.name}: scenario 16: what a failed send means`, () => {
    it.each(REFUSALS)('%s', async (_, fault, details, advice) => {
      graph.failNext(fault)
      const error = await failureOf(provider.send(to, { text: 'x' }))
      expect(error.details).toMatchObject({ provider: `${fixture.kind}:shop`, ...details })
      expect(error.message).toMatch(advice)
    })

    it('the pause that the platform names wins over the table', async () => {
      const usage = JSON.stringify({ '1': [{ type: 'messenger', estimated_time_to_regain_access: 3 }] })
      graph.failNext({
        kind: 'error',
        status: 400,
        code: 80_006,
        headers: { 'x-business-use-case-usage': usage },
      })
      graph.failNext({ kind: 'error', status: 429, text: 'slow down', headers: { 'retry-after': '7' } })
      expect((await failureOf(provider.send(to, { text: 'x' }))).details.retryAfterMs).toBe(180_000)
      expect((await failureOf(provider.send(to, { text: 'x' }))).details.retryAfterMs).toBe(7_000)
    })

    it('an answer that is lost is uncertain; silence ends so at the deadline; a refused connection is retryable', async () => {
      graph.failNext({ kind: 'lost-answer' }, { kind: 'silence' })
      expect((await failureOf(provider.send(to, { text: 'x' }))).outcome).toBe('uncertain')
      const hasty = fixture.make(optionsFor(graph.url, { sendTimeoutMs: 150 }))
      expect((await failureOf(hasty.send(to, { text: 'x' }))).outcome).toBe('uncertain')
      expect(graph.sends).toHaveLength(2)
      const { url } = graph
      await graph.close()
      expect((await failureOf(fixture.make(optionsFor(url)).send(to, { text: 'x' }))).outcome).toBe(
        'retryable',
      )
      graph = await new GraphApiDouble().listen()
    })

    it('once a part has arrived a failure is uncertain, whatever its cause, and keeps the pause', async () => {
      const media = { kind: 'image' as const, url: 'https://shop.example/a.jpg' }
      const sending = provider.send(to, { text: 'y esto', media })
      await graph.waitForSends(1)
      graph.failNext(refusal(400, 613))
      const error = await failureOf(sending)
      expect(error.message).toMatch(/^Only 1 of 2 parts of the message arrived/)
      expect(error.details).toMatchObject({ outcome: 'uncertain', scope: 'account', retryAfterMs: 60_000 })
    })

    it('secrets: wrong and revoked tokens are final, and in no error and no log', async () => {
      const wrong = 'EAAotherTokenThatIsWrong'
      const sink = new RecordingSink()
      const stranger = fixture.make(optionsFor(graph.url, { accessToken: wrong }))
      await stranger.start(sink, new AbortController().signal)
      const error = await failureOf(stranger.send(to, { text: 'x' }))
      await stranger.stop()
      expect(error.message).toContain('Malformed access token ***')
      expect(JSON.stringify([everythingIn(error), sink.logs, sink.errors])).not.toContain(wrong)
      graph.revokeToken()
      expect((await failureOf(provider.send(to, { text: 'x' }))).details).toMatchObject({
        outcome: 'final',
        platformCode: '190/460',
      })
    })
  })
}
