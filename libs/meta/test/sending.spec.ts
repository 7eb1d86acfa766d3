/** Sending through the Graph API, against the double: what succeeded, and what each failure means (scenario 16). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { LeaseLostError } from '@botmesh/core'
import { judgeGraphError, MetaProvider } from '@botmesh/meta'
import { GraphApiDouble, type GraphFault } from '../../../test/doubles/graph-api.js'
import { everythingIn, failuresWithout } from '../../../test/support/page-transport/failures.js'
import { PHONE_NUMBER_ID } from './samples.js'

const TOKEN = 'EAAsecretTokenOfTheTests'
const failureOf = failuresWithout(TOKEN)
const TO = { chatId: '34600111222' }

let graph: GraphApiDouble
let provider: MetaProvider

beforeEach(async () => {
  graph = await new GraphApiDouble({ accessToken: TOKEN }).listen()
  provider = providerFor(graph.url)
})
afterEach(() => graph.close())

function providerFor(graphUrl: string, more: object = {}): MetaProvider {
  return new MetaProvider({
    account: 'shop',
    phoneNumberId: PHONE_NUMBER_ID,
    accessToken: TOKEN,
    appSecret: 'app-secret',
    verifyToken: 'verify',
    graphUrl,
    ...more,
  })
}

describe('sending', () => {
  it('text: one call, and the platform’s id comes back', async () => {
    const sent = await provider.send(TO, { text: 'Hola' }, { idempotencyKey: 'rec/step/1/0' })
    expect(graph.sends).toHaveLength(1)
    expect(graph.sends[0]).toMatchObject({
      id: sent.id,
      to: '34600111222',
      version: 'v23.0',
      phoneNumberId: PHONE_NUMBER_ID,
      authorization: `Bearer ${TOKEN}`,
      body: { type: 'text', text: { body: 'Hola' }, biz_opaque_callback_data: 'rec/step/1/0' },
    })
  })

  it('bytes are uploaded first and sent by id', async () => {
    const data = new TextEncoder().encode('%PDF-1.7 of the tests')
    await provider.send(TO, {
      media: { kind: 'document', data, fileName: 'a.pdf', mimeType: 'application/pdf' },
    })
    expect(graph.uploads).toEqual([
      expect.objectContaining({ type: expect.stringContaining('multipart/form-data') }),
    ])
    expect(graph.sends[0]!.body).toMatchObject({ document: { id: graph.uploads[0]!.id, filename: 'a.pdf' } })
  })

  it('read marks and typing', async () => {
    await provider.markRead('wamid.77', { typing: true })
    expect(graph.readMarks[0]!.body).toMatchObject({
      message_id: 'wamid.77',
      typing_indicator: { type: 'text' },
    })
  })

  it('a file that WhatsApp would refuse for its size is refused before the first byte', async () => {
    const data = new Uint8Array(5 * 1024 * 1024 + 1)
    const error = await failureOf(provider.send(TO, { media: { kind: 'image', data } }))
    expect(error.outcome).toBe('final')
    expect(error.message).toContain('5242881 bytes, the platform takes 5242880')
    expect(graph.requests).toEqual([])
  })

  it('downloads what a user sent, bounded', async () => {
    graph.files.set('m1', { data: new Uint8Array(2000), mimeType: 'image/jpeg' })
    const got = await provider.download({ id: 'm1' })
    expect(got.mimeType).toBe('image/jpeg')
    expect(got.data.byteLength).toBe(2000)
    expect(await failureOf(provider.download({ id: 'm1' }, { maxBytes: 1000 }))).toMatchObject({
      outcome: 'final',
    })
  })

  it('K4: makes no request once its turn is lost', async () => {
    const lost = new AbortController()
    lost.abort(new LeaseLostError('meta:shop/1', 'expired'))
    await expect(provider.send(TO, { text: 'late' }, { signal: lost.signal })).rejects.toThrow(LeaseLostError)
    const data = new Uint8Array(8)
    const during = new AbortController()
    const sending = provider.send(TO, { media: { kind: 'image', data } }, { signal: during.signal })
    during.abort(new LeaseLostError('meta:shop/1', 'frozen'))
    await expect(sending).rejects.toThrow(LeaseLostError)
    expect(graph.sends).toEqual([])
  })
})

describe('scenario 16: what a failed send means', () => {
  const refusal = (status: number, code: number, more: object = {}): GraphFault => ({
    kind: 'error',
    status,
    code,
    ...more,
  })

  it.each<[string, GraphFault, object]>([
    [
      'call limit of the app',
      refusal(400, 4),
      { outcome: 'retryable', retryAfterMs: 60_000, scope: 'account' },
    ],
    ['call limit of the account', refusal(400, 80007), { outcome: 'retryable', scope: 'account' }],
    ['throughput', refusal(400, 130429), { outcome: 'retryable', retryAfterMs: 1_000, scope: 'account' }],
    ['spam limit', refusal(400, 131048), { outcome: 'retryable', retryAfterMs: 3_600_000, scope: 'account' }],
    [
      'one user too often',
      refusal(400, 131056),
      { outcome: 'retryable', retryAfterMs: 6_000, scope: 'chat' },
    ],
    ['service overloaded', refusal(500, 131016), { outcome: 'retryable' }],
    ['the 24 hour window', refusal(400, 131047), { outcome: 'final', platformCode: '131047' }],
    ['token revoked', refusal(401, 190), { outcome: 'final', platformCode: '190' }],
    ['no WhatsApp there', refusal(400, 131026), { outcome: 'final' }],
    ['a template that is refused', refusal(404, 132001), { outcome: 'final' }],
    ['a permission that is missing', refusal(403, 230), { outcome: 'final' }],
    ['a code nobody knows', refusal(400, 999_999), { outcome: 'final', platformCode: '999999' }],
    ['said to be transient', refusal(500, 999_998, { isTransient: true }), { outcome: 'retryable' }],
    [
      'a gateway',
      { kind: 'error', status: 502, text: '<html>Bad gateway</html>' },
      { outcome: 'uncertain', platformCode: '502' },
    ],
    [
      'HTTP 429 without a code',
      { kind: 'error', status: 429, text: 'slow down', headers: { 'retry-after': '7' } },
      { outcome: 'retryable', retryAfterMs: 7_000 },
    ],
    ['nonsense with HTTP 200', { kind: 'error', status: 200, text: '<html>' }, { outcome: 'uncertain' }],
  ])('%s', async (_, fault, details) => {
    graph.failNext(fault)
    expect((await failureOf(provider.send(TO, { text: 'x' }))).details).toMatchObject({
      provider: 'meta:shop',
      ...details,
    })
  })

  it('the pause that the platform names wins over the table', async () => {
    const usage = JSON.stringify({ '1': [{ type: 'messages', estimated_time_to_regain_access: 3 }] })
    graph.failNext(refusal(400, 80007, { headers: { 'x-business-use-case-usage': usage } }))
    expect((await failureOf(provider.send(TO, { text: 'x' }))).details.retryAfterMs).toBe(180_000)
  })

  it('says what to do, with the platform’s own words', async () => {
    graph.failNext(
      refusal(400, 131047, { message: '(#131047) Re-engagement message', details: 'More than 24 hours' }),
    )
    expect((await failureOf(provider.send(TO, { text: 'x' }))).message).toBe(
      'Graph API refused (code 131047): the user wrote last more than 24 hours ago: send a template. ' +
        'It said: (#131047) Re-engagement message: More than 24 hours',
    )
  })

  it.each([
    [132_000, /number of variables/],
    [132_001, /does not exist in this language, or is not approved/],
    [132_007, /breaks a policy/],
    [132_015, /paused for low quality/],
  ])('a template that is refused with %d says what to do', async (code, advice) => {
    graph.failNext(refusal(400, code))
    const error = await failureOf(provider.send(TO, { template: { name: 'pedido', language: 'es' } }))
    expect(error).toMatchObject({ outcome: 'final', details: { platformCode: String(code) } })
    expect(error.message).toMatch(advice)
  })

  it('a revoked token is final', async () => {
    graph.revokeToken()
    expect(await failureOf(provider.send(TO, { text: 'x' }))).toMatchObject({
      outcome: 'final',
      message: expect.stringContaining('make a new one'),
    })
  })

  it('an answer that is lost after the request was written is uncertain', async () => {
    graph.failNext({ kind: 'lost-answer' })
    expect((await failureOf(provider.send(TO, { text: 'x' }))).outcome).toBe('uncertain')
    expect(graph.sends).toHaveLength(1)
  })

  it('silence ends at the deadline, as uncertain', async () => {
    graph.failNext({ kind: 'silence' })
    const hasty = providerFor(graph.url, { sendTimeoutMs: 150 })
    const error = await failureOf(hasty.send(TO, { text: 'x' }))
    expect(error.outcome).toBe('uncertain')
    expect(error.message).toContain('no answer within 150 ms')
  })

  it('a refused connection is retryable', async () => {
    const { url } = graph
    await graph.close()
    const { outcome, message } = await failureOf(providerFor(url).send(TO, { text: 'x' }))
    expect(outcome).toBe('retryable')
    expect(message).toContain(`network failure (ECONNREFUSED) at ${new URL(url).host}`)
    graph = await new GraphApiDouble().listen()
  })

  it('an upload whose answer is lost, or that a gateway fails, may simply be sent again', async () => {
    const media = { kind: 'image' as const, data: new Uint8Array(4) }
    graph.failNext({ kind: 'lost-answer' }, { kind: 'error', status: 502, text: '<html>' })
    expect((await failureOf(provider.send(TO, { media }))).outcome).toBe('retryable')
    expect((await failureOf(provider.send(TO, { media }))).outcome).toBe('retryable')
  })

  it('secrets: a token that the platform quotes back is not passed on', async () => {
    const wrong = 'EAAotherTokenThatIsWrong'
    const error = await failureOf(providerFor(graph.url, { accessToken: wrong }).send(TO, { text: 'x' }))
    expect(JSON.stringify(everythingIn(error))).not.toContain(wrong)
    expect(error.message).toContain('Malformed access token ***')
  })

  it('judges by code first, by status where there is none', () => {
    expect(judgeGraphError({ status: 500, code: 131047 }).outcome).toBe('final')
    expect(judgeGraphError({ status: 400 }).outcome).toBe('final')
    expect(judgeGraphError({ status: 503 }).outcome).toBe('uncertain')
  })
})
