/** Long polling when Telegram refuses: another poller, a bad token, too many calls, nobody there (P3, scenario 18). */
import { describe, expect, it } from '@jest/globals'
import { ProviderError } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { TelegramProvider } from '@botmesh/telegram'
import { HeldClock } from './held-clock.js'
import { lead, make, telegram } from './polling-replica.js'
import { TOKEN } from './samples.js'

describe('when Telegram refuses', () => {
  it('409: another poller came later: backs off, reports closed, does not fight', async () => {
    const clock = new HeldClock()
    const sink = new RecordingSink({ clock })
    const { provider } = await lead({ sink })
    await telegram.until(() => telegram.openPolls === 1)
    const other = new AbortController()
    const intruder = fetch(`${telegram.url}/bot${TOKEN}/getUpdates?`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ timeout: 50 }),
      signal: other.signal,
    }).catch(() => {})
    await sink.until(() => provider.state.status === 'closed')
    expect(provider.state).toMatchObject({ reason: expect.stringMatching(/^conflict: /) })
    expect(provider.state).not.toHaveProperty('final')
    const polls = telegram.methods.filter((method) => method === 'getUpdates').length
    await clock.armed()
    const firstPause = clock.nextMs!
    expect(firstPause).toBeGreaterThanOrEqual(2000)
    expect(telegram.methods.filter((method) => method === 'getUpdates')).toHaveLength(polls)
    other.abort()
    await intruder
    clock.advance(firstPause)
    await sink.until(() => provider.state.status === 'open')
    expect(sink.states.map((state) => state.status)).toEqual(['connecting', 'open', 'closed', 'open'])
  })

  it('409 again and again: the pauses grow although each retry succeeds at first', async () => {
    const clock = new HeldClock()
    const sink = new RecordingSink({ clock })
    const conflict = {
      kind: 'error',
      code: 409,
      description: 'Conflict: terminated by other getUpdates request',
    } as const
    const provider = make()
    telegram.failNext('getUpdates', ...Array.from({ length: 5 }, () => conflict))
    await provider.start(sink, new AbortController().signal)
    const pauses: number[] = []
    for (let round = 1; round <= 5; round++) {
      await sink.until(() => sink.states.filter((state) => state.status === 'closed').length === round)
      await clock.armed()
      pauses.push(clock.nextMs!)
      clock.advance(clock.nextMs!)
    }
    expect(pauses[0]).toBeGreaterThanOrEqual(2000)
    expect(pauses[4]!).toBeGreaterThan(pauses[0]! * 3)
    await sink.until(() => provider.state.status === 'open')
  })

  it('a wrong token is an error of start, final, said without the token', async () => {
    const provider = new TelegramProvider({ token: '123456789:AAwrongToken', apiRoot: telegram.url })
    const sink = new RecordingSink()
    const error = await provider.start(sink, new AbortController().signal).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({ details: { final: true }, message: expect.stringContaining('@BotFather') })
    expect(provider.state).toMatchObject({ status: 'closed', final: true })
    expect(sink.errors).toEqual([])
    expect(JSON.stringify([sink.states, sink.logs, String(error)])).not.toContain('AAwrongToken')
    await provider.stop()
  })

  it('a token that is revoked later is reported and final: no more polls', async () => {
    const { provider, sink } = await lead()
    await telegram.until(() => telegram.openPolls === 1)
    telegram.failNext('getUpdates', { kind: 'error', code: 401, description: 'Unauthorized' })
    telegram.say(501001, 'last')
    await sink.until(() => sink.errors.length === 1)
    expect(sink.errors[0]).toBeInstanceOf(ProviderError)
    await sink.until(() => provider.state.status === 'closed')
    expect(provider.state).toMatchObject({ final: true })
  })

  it('429: waits as long as it is told', async () => {
    const clock = new HeldClock()
    const sink = new RecordingSink({ clock })
    const provider = make()
    telegram.failNext('getUpdates', { kind: 'error', code: 429, parameters: { retry_after: 17 } })
    await provider.start(sink, new AbortController().signal)
    await sink.until(() => provider.state.status === 'closed')
    await clock.armed()
    expect(clock.nextMs).toBe(17_000)
    clock.advance(17_000)
    await sink.until(() => provider.state.status === 'open')
  })

  it('an unreachable server is tried again, quietly, with the token in no log', async () => {
    const port = Number(new URL(telegram.url).port)
    const provider = make()
    await telegram.close()
    const clock = new HeldClock()
    const sink = new RecordingSink({ clock })
    await provider.start(sink, new AbortController().signal)
    await sink.until(() => provider.state.status === 'closed')
    expect(provider.state).toMatchObject({ reason: 'unreachable: network failure (ECONNREFUSED)' })
    expect(JSON.stringify([sink.states, sink.logs])).not.toContain(TOKEN)
    await telegram.listen(port)
    await clock.armed()
    clock.advance(clock.nextMs!)
    await sink.until(() => provider.state.status === 'open')
    await provider.stop()
  })
})
