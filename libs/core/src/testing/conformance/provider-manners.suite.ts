/**
 * Part of the conformance of providers: what an operator and the rest of the bot notice of trouble. Refused
 * credentials, a platform that is away, a pause that it asks for, secrets, and who wrote in a group.
 */
import { inspect } from 'node:util'
import { BotmeshError, SendError } from '../../contracts/errors.js'
import type { ProviderState } from '../../contracts/provider.js'
import type { RecordingSink } from '../recording-sink.js'
import { onProvider, type ProviderBed, type ProviderFixture } from './provider-bed.js'
import { rejection, type TestApi } from './test-api.js'

/** All that an operator could see, causes and hidden properties included. */
function visible(sink: RecordingSink, thrown: unknown): string {
  return inspect([sink.logs, sink.states, sink.errors, thrown], { depth: 12, showHidden: true })
}

function isFinal(state: ProviderState | undefined): boolean {
  return state?.status === 'closed' && state.final === true
}

async function firstChat(bed: ProviderBed, sink: RecordingSink, leave: AbortController): Promise<string> {
  await bed.provider.start(sink, leave.signal)
  await sink.until(() => bed.provider.state.status === 'open')
  await bed.userWrites('hola')
  await sink.until(() => sink.messages.length > 0)
  return sink.messages[0]?.chatId ?? ''
}

export function providerManners({ it, expect }: TestApi, fixture: ProviderFixture): void {
  const { groups, limitsSends, reconnects, refusesCredentials } = fixture.guarantees
  if (groups === true) {
    it(
      'B4: what is said in a group says so, and who said it',
      onProvider(fixture, async (bed, sink, leave) => {
        await bed.provider.start(sink, leave.signal)
        await sink.until(() => bed.provider.state.status === 'open')
        await bed.groupWrites?.('hola a todos')
        await sink.until(() => sink.messages.length > 0)
        const [message] = sink.messages
        expect(message).toMatchObject({ isGroup: true, body: 'hola a todos' })
        expect(message?.participant).toBe(message?.from)
        expect(message?.participant === message?.chatId).toBe(false)
      }),
    )
  }
  if (refusesCredentials === true) refusedCredentials({ it, expect }, fixture)
  if (reconnects === true) outages({ it, expect }, fixture)
  if (limitsSends === true) {
    it(
      'scenario 16: a pause that the platform asks for says whom it concerns; another chat is not held back by it',
      onProvider(fixture, async (bed, sink, leave) => {
        const chatId = await firstChat(bed, sink, leave)
        bed.limitNextSend?.(30_000)
        const error = await rejection(bed.provider.send({ chatId }, { text: 'uno' }))
        const { scope } = error instanceof SendError ? error.details : {}
        expect(scope === 'chat' || scope === 'account').toBe(true)
        if (scope === 'chat' && bed.otherChat !== undefined) {
          await bed.provider.send({ chatId: bed.otherChat }, { text: 'dos' })
          expect(bed.received()).toEqual(['dos'])
        }
        const seen = visible(sink, error)
        expect((bed.secrets ?? []).filter((secret) => seen.includes(secret))).toEqual([])
      }),
    )
  }
}

type Tests = Pick<TestApi, 'it' | 'expect'>

function refusedCredentials({ it, expect }: Tests, fixture: ProviderFixture): void {
  it(
    'P3: credentials that the platform refuses are final, by an error of start or of the sink, without the secret',
    onProvider(fixture, async (bed, sink, leave) => {
      const provider = bed.refused?.()
      if (provider === undefined) throw new Error('the bed has no provider with refused credentials')
      let thrown: unknown
      try {
        thrown = await provider.start(sink, leave.signal).then(
          () => undefined,
          (error: unknown) => error,
        )
        await sink.until(() => isFinal(sink.states.at(-1)))
        const error = thrown ?? sink.errors[0]
        expect(error instanceof BotmeshError && !error.retryable).toBe(true)
        expect(isFinal(provider.state)).toBe(true)
      } finally {
        await provider.stop()
      }
      expect(bed.connections()).toBe(0)
      const seen = visible(sink, thrown)
      expect((bed.secrets ?? []).filter((secret) => seen.includes(secret))).toEqual([])
    }),
  )
}

function outages({ it, expect }: Tests, fixture: ProviderFixture): void {
  it(
    'P3: while the platform is away the state is closed, not final, until it is open again; then messages come',
    onProvider(fixture, async (bed, sink, leave) => {
      await firstChat(bed, sink, leave)
      const states = sink.states.length
      const restore = bed.outage?.()
      await sink.until(() => bed.provider.state.status === 'closed')
      expect(isFinal(bed.provider.state)).toBe(false)
      restore?.()
      await sink.until(() => bed.provider.state.status === 'open')
      const since = sink.states.slice(states).map((state) => state.status)
      expect(since[0]).toBe('closed')
      expect(since.at(-1)).toBe('open')
      await bed.userWrites('otra vez')
      await sink.until(({ bodies }) => bodies.includes('otra vez'))
      expect(sink.bodies.filter((body) => body === 'hola')).toEqual(['hola'])
    }),
  )
}
