/**
 * Conformance of providers: the rules that the runtime relies on (contracts/provider.ts). The fixture plays the
 * platform; whatever needs the platform's own protocol stays in the provider's own tests.
 */
import { SendError } from '../../contracts/errors.js'
import type { WebhookRequest } from '../../contracts/provider.js'
import type { RecordingSink } from '../recording-sink.js'
import { onProvider, type ProviderBed, type ProviderFixture } from './provider-bed.js'
import { providerManners } from './provider-manners.suite.js'
import { rejection, type TestApi } from './test-api.js'

export type { ProviderBed, ProviderFixture, ProviderGuarantees } from './provider-bed.js'

export function providerSuite(api: TestApi, fixture: ProviderFixture): void {
  const { describe, it, expect } = api
  const { guarantees } = fixture
  const opened = (bed: ProviderBed, sink: RecordingSink): Promise<void> =>
    sink.until(() => bed.provider.state.status === 'open')

  describe(`${fixture.name}: provider`, () => {
    it(
      'its id is kind:account, and before the start nothing is connected',
      onProvider(fixture, async (bed) => {
        expect(/^[a-z][a-z0-9-]*:.+$/.test(bed.provider.id)).toBe(true)
        expect(bed.provider.state.status).toBe('closed')
        expect(bed.connections()).toBe(0)
      }),
    )

    it(
      'scenario 21: started twice it is connected once; stop is idempotent and leaves nothing; it can start again',
      onProvider(fixture, async (bed, sink, leave) => {
        const { provider } = bed
        await Promise.all([provider.start(sink, leave.signal), provider.start(sink, leave.signal)])
        await opened(bed, sink)
        if (guarantees.connects) expect(bed.connections()).toBe(1)
        expect(sink.states.map((state) => state.status)).toEqual(['connecting', 'open'])
        await Promise.all([provider.stop(), provider.stop()])
        expect(provider.state.status).toBe('closed')
        expect(bed.connections()).toBe(0)
        await provider.start(sink, leave.signal)
        await opened(bed, sink)
        if (guarantees.connects) expect(bed.connections()).toBe(1)
      }),
    )

    it(
      'stopped while it starts, it ends closed',
      onProvider(fixture, async (bed, sink, leave) => {
        const starting = bed.provider.start(sink, leave.signal)
        await bed.provider.stop()
        await starting.catch(() => undefined)
        await bed.provider.stop()
        expect(bed.provider.state.status).toBe('closed')
        expect(bed.connections()).toBe(0)
      }),
    )

    it(
      'scenario 20: when its leadership ends it disconnects at once, and opens nothing under an ended one',
      onProvider(fixture, async (bed, sink, leave) => {
        await bed.provider.start(sink, leave.signal)
        await opened(bed, sink)
        leave.abort()
        await sink.until(() => bed.provider.state.status === 'closed')
        await bed.provider.start(sink, leave.signal).catch(() => undefined)
        expect(bed.provider.state.status).toBe('closed')
        expect(bed.connections()).toBe(0)
      }),
    )

    it(
      'T2: hands messages over in the platform’s order, whole and JSON but for raw; never its own',
      onProvider(fixture, async (bed, sink, leave) => {
        await bed.provider.start(sink, leave.signal)
        await opened(bed, sink)
        for (let n = 1; n <= 5; n += 1) await bed.userWrites(`mensaje ${n}`)
        await sink.until(() => sink.messages.length >= 5)
        expect(sink.messages.map((one) => one.body)).toEqual([1, 2, 3, 4, 5].map((n) => `mensaje ${n}`))
        expect(new Set(sink.messages.map((one) => one.id)).size).toBe(5)
        const { raw: _raw, ...first } = sink.messages[0] ?? { raw: undefined }
        expect(JSON.parse(JSON.stringify(first))).toEqual(first)
        const chatId = sink.messages[0]?.chatId ?? ''
        const sent = await bed.provider.send({ chatId }, { text: 'respuesta' })
        expect(sent.id === '').toBe(false)
        expect(bed.received().includes('respuesta')).toBe(true)
        await bed.userWrites('otra')
        await sink.until(() => sink.messages.length >= 6)
        expect(sink.messages.map((one) => one.body).includes('respuesta')).toBe(false)
      }),
    )

    it(
      'L2: nothing is sent under a signal that has fired',
      onProvider(fixture, async (bed, sink, leave) => {
        await bed.provider.start(sink, leave.signal)
        await opened(bed, sink)
        await bed.userWrites('hola')
        await sink.until(() => sink.messages.length > 0)
        const chatId = sink.messages[0]?.chatId ?? ''
        await rejection(bed.provider.send({ chatId }, { text: 'tarde' }, { signal: AbortSignal.abort() }))
        expect(bed.received().includes('tarde')).toBe(false)
      }),
    )

    if (guarantees.redelivers === true) {
      it(
        'T2: what the runtime does not accept comes again, and is not overtaken by what follows in its chat',
        onProvider(fixture, async (bed, sink, leave) => {
          let refusals = 2
          sink.accept = async (message) => {
            if (message.body === 'primero' && refusals-- > 0)
              throw new Error('The journal cannot be reached.')
          }
          await bed.provider.start(sink, leave.signal)
          await opened(bed, sink)
          await bed.userWrites('primero')
          await bed.userWrites('segundo')
          await sink.until(() => sink.messages.length >= 2)
          expect(sink.bodies).toEqual(['primero', 'segundo'])
        }),
      )
    }

    sendingTests(api, fixture, opened)
    providerManners(api, fixture)
    if (guarantees.webhook === true) webhookTests(api, fixture)
  })
}

type Opened = (bed: ProviderBed, sink: RecordingSink) => Promise<void>

/** Starts, lets a user write, and sends an answer that will not succeed. @returns the error. */
async function failedSend(
  bed: ProviderBed,
  sink: RecordingSink,
  leave: AbortController,
  opened: Opened,
  spoil: () => void,
): Promise<unknown> {
  await bed.provider.start(sink, leave.signal)
  await opened(bed, sink)
  await bed.userWrites('hola')
  await sink.until(() => sink.messages.length > 0)
  spoil()
  const { chatId = '' } = sink.messages[0] ?? {}
  return rejection(bed.provider.send({ chatId }, { text: 'respuesta' }))
}

function sendingTests({ it, expect }: TestApi, fixture: ProviderFixture, opened: Opened): void {
  const { refusesSends, limitsSends, losesAnswers } = fixture.guarantees
  const failing = (
    spoil: (bed: ProviderBed) => void,
    check: (error: unknown, bed: ProviderBed) => void,
  ): (() => Promise<void>) =>
    onProvider(fixture, async (bed, sink, leave) => {
      const error = await failedSend(bed, sink, leave, opened, () => spoil(bed))
      expect(error instanceof SendError).toBe(true)
      expect(error).toMatchObject({ details: { provider: bed.provider.id } })
      check(error, bed)
    })

  if (refusesSends) {
    it(
      'scenario 16: a send that the platform refuses for good is a final SendError',
      failing(
        (bed) => bed.refuseNextSend?.(),
        (error) => void expect(error).toMatchObject({ outcome: 'final', retryable: false }),
      ),
    )
  }
  if (limitsSends === true) {
    it(
      'scenario 16: a send that the platform puts off is retryable, after the pause it asked for',
      failing(
        (bed) => bed.limitNextSend?.(7_000),
        (error) =>
          void expect(error).toMatchObject({ outcome: 'retryable', details: { retryAfterMs: 7_000 } }),
      ),
    )
  }
  if (losesAnswers === true) {
    it(
      'scenario 16: a send whose answer is lost is uncertain, and is not repeated by the provider',
      failing(
        (bed) => bed.loseNextAnswer?.(),
        (error, bed) => {
          expect(error).toMatchObject({ outcome: 'uncertain' })
          expect(bed.received()).toEqual(['respuesta'])
        },
      ),
    )
  }
}

function webhookTests({ it, expect }: TestApi, fixture: ProviderFixture): void {
  it(
    'scenario 25: unsigned 401, not JSON 400, too large 413, unknown events 200; none reaches the runtime',
    onProvider(fixture, async (bed, sink, leave) => {
      await bed.provider.start(sink, leave.signal)
      const status = async (request: WebhookRequest | undefined) =>
        request === undefined ? 0 : (await bed.provider.handle?.(request))?.status
      expect(await status(bed.requests?.unsigned())).toBe(401)
      expect(await status(bed.requests?.notJson())).toBe(400)
      expect(await status(bed.requests?.tooLarge())).toBe(413)
      expect(await status(bed.requests?.unknownEvent())).toBe(200)
      expect(sink.messages).toEqual([])
      expect(await status(bed.requests?.good())).toBe(200)
      expect(sink.messages.length).toBe(1)
    }),
  )

  it(
    'P1: while it is not started, or its leadership has ended, a webhook is answered 503 with Retry-After',
    onProvider(fixture, async (bed, sink, leave) => {
      const answer = async () => bed.requests && (await bed.provider.handle?.(bed.requests.good()))
      expect(await answer()).toMatchObject({ status: 503 })
      await bed.provider.start(sink, leave.signal)
      leave.abort()
      const after = await answer()
      expect(after).toMatchObject({ status: 503 })
      expect(after?.headers?.['retry-after']).toBeDefined()
      expect(sink.messages).toEqual([])
    }),
  )

  it(
    'scenario 17: the platform is answered once the runtime has accepted, not before',
    onProvider(fixture, async (bed, sink, leave) => {
      await bed.provider.start(sink, leave.signal)
      let accept = (): void => undefined
      // Reading what came may take a while: that is not what is asked here.
      const asked = new Promise<void>((resolve) => {
        sink.accept = () => {
          resolve()
          return new Promise<void>((accepted) => (accept = accepted))
        }
      })
      let answered = false
      const answer = bed.provider.handle?.(bed.requests!.good()).finally(() => (answered = true))
      await asked
      await new Promise<void>((resolve) => setImmediate(resolve))
      expect(answered).toBe(false)
      accept()
      expect(await answer).toMatchObject({ status: 200 })
    }),
  )
}
