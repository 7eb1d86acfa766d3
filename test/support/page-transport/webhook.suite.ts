/** What is answered to whom at the webhook of Messenger and Instagram, and what reaches the runtime (scenario 25). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Message } from '@botmesh/core'
import { RecordingSink, SeededRandom, seedOfRun } from '@botmesh/core/testing'
import type { PageProvider, PageReceipt } from '@botmesh/meta/page'
import { damageBody } from '../../doubles/damage-body.js'
import { signMetaBody } from '../../doubles/graph-api.js'
import { optionsFor, post, SECRET, textsFrom, VERIFY, type PageFixture } from './fixture.js'

const NOWHERE = 'http://127.0.0.1:9'

export function pageWebhookSuite(fixture: PageFixture): void {
  const { samples } = fixture
  let receipts: PageReceipt[]
  let provider: PageProvider
  let sink: RecordingSink

  beforeEach(async () => {
    receipts = []
    provider = fixture.make(optionsFor(NOWHERE, { onReceipt: (receipt) => receipts.push(receipt) }))
    sink = new RecordingSink()
    await provider.start(sink, new AbortController().signal)
  })
  afterEach(() => provider.stop())

  describe(`${fixture.name}: who may call the webhook`, () => {
    it('the handshake gives the challenge back to who knows the verify token', async () => {
      const query = { 'hub.mode': 'subscribe', 'hub.verify_token': VERIFY, 'hub.challenge': '1158201444' }
      const get = (given: Record<string, string>) =>
        provider.handle({ method: 'GET', headers: {}, query: given, rawBody: new Uint8Array() })
      expect(await get(query)).toMatchObject({ status: 200, body: '1158201444' })
      expect(await get({ ...query, 'hub.verify_token': 'guess' })).toMatchObject({ status: 403 })
      expect(await get({})).toMatchObject({ status: 400 })
    })

    it('scenario 25: a signature that is missing, wrong, of another secret or body: 401, nothing is handled', async () => {
      const body = samples.text('text')
      const bad = [
        '',
        `sha256=${'0'.repeat(64)}`,
        signMetaBody(body, 'other'),
        signMetaBody(body, SECRET).slice(7),
      ]
      for (const signature of bad) {
        expect(await provider.handle(post(body, signature))).toMatchObject({ status: 401 })
      }
      const changed = Buffer.from(body)
      changed[changed.length - 3] = 0x20
      expect(await provider.handle(post(changed, signMetaBody(body, SECRET)))).toMatchObject({ status: 401 })
      expect(sink.messages).toEqual([])
    })

    it('scenario 25: not JSON, no object, not UTF-8: 400; too large: 413; another method: 405', async () => {
      for (const body of ['{', '', '[]', '"text"', 'null', Buffer.from([0x7b, 0xff, 0x7d])]) {
        expect(await provider.handle(post(body))).toMatchObject({ status: 400 })
      }
      expect(await provider.handle(post(' '.repeat(64 * 1024 + 1)))).toMatchObject({ status: 413 })
      expect(await provider.handle({ ...post('{}'), method: 'PUT' })).toMatchObject({ status: 405 })
    })
  })

  describe(`${fixture.name}: accepting messages`, () => {
    it('T2: several entries and events of one body reach the runtime in order, each chat by itself', async () => {
      expect(await provider.handle(post(samples.text('several')))).toMatchObject({ status: 200 })
      const of = (chat: string) => sink.messages.filter((one) => one.chatId === chat).map((one) => one.body)
      expect(of(fixture.users[0])).toEqual(['uno', 'tres', 'cuatro'])
      expect(of(fixture.users[1])).toEqual(['dos'])
      expect(receipts).toHaveLength(1)
    })

    it('P2: echoes of its own messages, and conversations that another app has (standby), reach no handler', async () => {
      for (const name of ['echo', 'standby', 'referral']) {
        expect(await provider.handle(post(samples.text(name)))).toMatchObject({ status: 200 })
      }
      expect(sink.messages).toEqual([])
      expect(sink.logs.map((log) => [log.level, (log.details as { reason: string }).reason])).toEqual([
        ['debug', 'written by this account'],
        ['debug', 'standby: another app has this conversation'],
        ['debug', 'event type "referral"'],
      ])
    })

    it('scenario 5: a refused message is answered 503, so that it comes again, and none overtakes it', async () => {
      const tried: string[] = []
      sink.accept = async (message: Message) => {
        tried.push(message.body)
        if (message.body === 'uno') throw new Error('journal unreachable')
      }
      const body = samples.text('several')
      expect(await provider.handle(post(body))).toMatchObject({
        status: 503,
        headers: { 'retry-after': '1' },
      })
      expect(tried).toEqual(['uno', 'dos'])
      sink.accept = async () => {}
      expect(await provider.handle(post(body))).toMatchObject({ status: 200 })
      expect(sink.bodies).toEqual(['dos', 'uno', 'dos', 'tres', 'cuatro'])
    })

    it('T2: a slow chat does not hold up another one of the same body', async () => {
      const [slow, quick] = fixture.users
      let free = () => {}
      const gate = new Promise<void>((resolve) => (free = resolve))
      sink.accept = (message) => (message.body === 'one' ? gate : Promise.resolve())
      const answer = provider.handle(
        post(
          textsFrom(fixture, [
            [slow, 'a', 'one'],
            [slow, 'b', 'two'],
            [quick, 'c', 'three'],
          ]),
        ),
      )
      await sink.until(() => sink.messages.length === 1)
      expect(sink.bodies).toEqual(['three'])
      free()
      expect(await answer).toMatchObject({ status: 200 })
      expect(sink.bodies).toEqual(['three', 'one', 'two'])
    })

    it('read events reach the callback, never the runtime; a callback that throws or rejects is reported', async () => {
      expect(await provider.handle(post(samples.text(fixture.readSample)))).toMatchObject({ status: 200 })
      expect(receipts).toEqual([expect.objectContaining({ kind: 'read', chatId: fixture.users[0] })])
      expect(sink.messages).toEqual([])
      const failing = (): never => {
        throw new Error('of the application')
      }
      for (const onReceipt of [failing, async () => failing()]) {
        const thrower = fixture.make(optionsFor(NOWHERE, { onReceipt }))
        await thrower.start(sink, new AbortController().signal)
        expect(await thrower.handle(post(samples.text(fixture.readSample)))).toMatchObject({ status: 200 })
        await thrower.stop()
      }
      expect(sink.errors).toHaveLength(2)
    })
  })

  describe(`${fixture.name}: fuzz`, () => {
    it('scenario 25: mutated bodies never crash it, and are answered 2xx or 4xx', async () => {
      const chance = new SeededRandom(seedOfRun())
      for (let round = 0; round < 3000; round += 1) {
        const body = damageBody(samples.text(chance.pick(samples.names)), chance)
        const { status } = await provider.handle(post(body))
        if (!(status >= 200 && status < 500)) {
          throw new Error(`SEED=${chance.seed}, round ${round}: ${status} for ${body}`)
        }
      }
      expect(sink.errors.every((error) => error instanceof Error)).toBe(true)
    })
  })
}
