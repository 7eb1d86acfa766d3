/**
 * Conformance of providers: the rules that the runtime relies on (contracts/provider.ts). The fixture plays the
 * platform; whatever needs the platform's own protocol stays in the provider's own tests.
 */
import { SendError } from '../../contracts/errors.js'
import type { Message } from '../../contracts/message.js'
import type { Provider, ProviderSink, ProviderState } from '../../contracts/provider.js'
import { silentLogger } from '../../runtime/silent-logger.js'
import { systemClock, systemRandom } from '../../runtime/system-clock.js'
import { rejection, type TestApi } from './test-api.js'

export interface ProviderGuarantees {
  /** It holds a connection that opens by itself once started; webhooks do not. */
  connects: boolean
  /** Sends that the platform refuses for good are `final`. */
  refusesSends: boolean
}

/** One account of the platform, played by the driver's author. */
export interface ProviderBed {
  provider: Provider
  /** Connections of the account at present. */
  connections(): number
  /** A user writes; resolves when the platform has delivered it (not: when it was accepted). */
  userWrites(body: string): Promise<void>
  /** Texts that reached the user. */
  received(): string[]
  /** The platform refuses the next send for good. */
  refuseNextSend?(): void
  close(): Promise<void>
}

export interface ProviderFixture {
  name: string
  guarantees: ProviderGuarantees
  bed(): Promise<ProviderBed>
}

/** A sink that remembers, with promises for what is awaited. */
class RecordingSink implements ProviderSink {
  readonly logger = silentLogger
  readonly clock = systemClock
  readonly random = systemRandom
  readonly messages: Message[] = []
  readonly states: ProviderState[] = []
  readonly errors: unknown[] = []
  private waiters: { check: () => boolean; resolve: () => void }[] = []

  async message(message: Message): Promise<void> {
    this.messages.push(message)
    this.look()
  }

  state(state: ProviderState): void {
    this.states.push(state)
    this.look()
  }

  pairing(): void {}

  error(error: unknown): void {
    this.errors.push(error)
  }

  until(check: () => boolean): Promise<void> {
    if (check()) return Promise.resolve()
    return new Promise((resolve) => this.waiters.push({ check, resolve }))
  }

  private look(): void {
    const due = this.waiters.filter((waiter) => waiter.check())
    this.waiters = this.waiters.filter((waiter) => !due.includes(waiter))
    due.forEach((waiter) => waiter.resolve())
  }
}

function onProvider(
  fixture: ProviderFixture,
  test: (bed: ProviderBed, sink: RecordingSink, leave: AbortController) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const bed = await fixture.bed()
    try {
      await test(bed, new RecordingSink(), new AbortController())
    } finally {
      await bed.provider.stop()
      await bed.close()
    }
  }
}

export function providerSuite({ describe, it, expect }: TestApi, fixture: ProviderFixture): void {
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

    if (guarantees.refusesSends) {
      it(
        'scenario 16: a send that the platform refuses for good is a final SendError',
        onProvider(fixture, async (bed, sink, leave) => {
          await bed.provider.start(sink, leave.signal)
          await opened(bed, sink)
          await bed.userWrites('hola')
          await sink.until(() => sink.messages.length > 0)
          bed.refuseNextSend?.()
          const chatId = sink.messages[0]?.chatId ?? ''
          const error = await rejection(bed.provider.send({ chatId }, { text: 'no' }))
          expect(error instanceof SendError).toBe(true)
          expect(error).toMatchObject({ outcome: 'final', details: { provider: bed.provider.id } })
        }),
      )
    }
  })
}
