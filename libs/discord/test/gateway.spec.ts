/** The gateway: close codes, resuming, dead connections, and no connection after the end (scenarios 20, 21, 23). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ProviderError, systemClock, type Clock } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { Bench, hastyClock, statuses } from './support/bench.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())

describe('scenario 23: how a connection ends', () => {
  it.each([
    [4004, 'wrong-token', 'Developer Portal'],
    [4010, 'invalid-shard', 'update'],
    [4011, 'sharding-required', '2500 servers'],
    [4012, 'invalid-api-version', 'update discord.js'],
    [4013, 'invalid-intents', 'update discord.js'],
    [4014, 'disallowed-intents', 'Message Content intent'],
  ])('%i at the start is final: an error of start that says what to do', async (code, reason, advice) => {
    bench.discord.gateway.refuseWith = code
    const provider = bench.provider()
    const sink = bench.sink(new RecordingSink())
    const error = await provider.start(sink, new AbortController().signal).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({
      retryable: false,
      details: { provider: 'discord:tienda', reason, final: true },
      message: expect.stringContaining(advice),
    })
    expect(provider.state).toEqual({ status: 'closed', reason, final: true })
    await provider.stop()
    expect(bench.discord.gateway.accepted).toBe(1)
    expect(sink.errors).toEqual([])
  })

  it('a token that the REST API refuses is final too, before anything is connected', async () => {
    const wrong = `${'290926798999357250'.replace(/.*/, (id) => Buffer.from(id).toString('base64url'))}.Gwrong.AAwrong`
    const provider = bench.provider({ token: wrong })
    const sink = bench.sink(new RecordingSink())
    await expect(provider.start(sink, new AbortController().signal)).rejects.toMatchObject({
      details: { reason: 'wrong-token', final: true },
    })
    expect(statuses(sink)).toEqual(['connecting', 'closed:wrong-token'])
    expect(bench.discord.gateway.accepted).toBe(0)
  })

  it('an intent that the application may not ask for: 4014; without the message content it connects', async () => {
    bench.discord.gateway.allowedIntents = 0
    await expect(bench.begin({}, new RecordingSink())).rejects.toMatchObject({
      details: { reason: 'disallowed-intents' },
    })
    await bench.open({ messageContent: false, listen: 'mentions' })
  })

  it('4004 later: final and reported, not retried', async () => {
    const { provider, sink } = await bench.open()
    bench.discord.gateway.refuseWith = 4004
    bench.discord.gateway.close(4000)
    await sink.until(() => sink.errors.length > 0)
    expect(sink.errors).toMatchObject([{ code: 'PROVIDER', details: { reason: 'wrong-token', final: true } }])
    expect(provider.state).toEqual({ status: 'closed', reason: 'wrong-token', final: true })
    await provider.stop()
    expect(bench.discord.gateway.accepted).toBe(2)
  })

  it.each([4000, 4001, 4002, 1001, 4999])(
    '%i: resumed, what was missed comes, nothing twice',
    async (code) => {
      const { sink } = await bench.open()
      bench.discord.say('uno')
      await sink.until(() => sink.messages.length === 1)
      bench.discord.gateway.close(code)
      bench.discord.say('dos')
      await sink.until(() => sink.messages.length === 2)
      bench.discord.say('tres')
      await sink.until(() => sink.messages.length === 3)
      expect(sink.bodies).toEqual(['uno', 'dos', 'tres'])
      const { identified, resumed, mostOpen } = bench.discord.gateway
      expect({ identified, resumed, mostOpen }).toEqual({ identified: 1, resumed: 1, mostOpen: 1 })
      expect(sink.states.map((state) => state.status)).toEqual(['connecting', 'open', 'closed', 'open'])
      expect(sink.errors).toEqual([])
    },
  )

  it.each([4003, 4005, 4007, 4009, 1000])(
    '%i: a new session, after the pause that Discord asks for',
    async (code) => {
      const asked: number[] = []
      const { sink } = await bench.open({}, bench.sink(new RecordingSink({ clock: hastyClock(asked) })))
      asked.length = 0
      bench.discord.gateway.close(code)
      await sink.until(() => sink.states.length === 4)
      expect(bench.discord.gateway.identified).toBe(2)
      expect(Math.max(...asked)).toBeGreaterThanOrEqual(1_000)
      bench.discord.say('hola')
      await sink.until(() => sink.messages.length === 1)
    },
  )

  it('op 7: reconnects and resumes', async () => {
    const { sink } = await bench.open()
    bench.discord.gateway.askToReconnect()
    await sink.until(() => sink.states.length === 4)
    const { identified, resumed } = bench.discord.gateway
    expect({ identified, resumed }).toEqual({ identified: 1, resumed: 1 })
  })

  it('op 9: a session that is gone is begun anew, one that is not goes on over the same connection', async () => {
    const { sink } = await bench.open()
    bench.discord.gateway.invalidate(true)
    await bench.discord.until(({ gateway }) => gateway.resumed === 1)
    expect(bench.discord.gateway.accepted).toBe(1)
    bench.discord.gateway.invalidate(false)
    await sink.until(() => sink.states.at(-1)?.status === 'open' && bench.discord.gateway.identified === 2)
    expect(statuses(sink)).toContain('closed:invalid-session')
  })

  it('a connection that breaks without a word is made again and resumed', async () => {
    const { sink } = await bench.open()
    bench.discord.gateway.drop()
    bench.discord.say('hola')
    await sink.until(() => sink.messages.length === 1)
    expect(bench.discord.gateway.identified).toBe(1)
  })

  it('heartbeats that are not acknowledged: a dead connection is given up and the session resumed', async () => {
    await bench.stop()
    bench = await Bench.start({ heartbeatMs: 60 })
    const { sink } = await bench.open()
    await bench.discord.until(({ gateway }) => gateway.heartbeats > 2)
    expect(bench.discord.gateway.accepted).toBe(1)
    bench.discord.gateway.acknowledges = false
    await sink.until(() => sink.states.some((state) => state.status === 'closed'))
    bench.discord.gateway.acknowledges = true
    bench.discord.say('hola')
    await sink.until(() => sink.messages.length === 1)
    expect(statuses(sink)).toContain('closed:zombie-connection')
    expect(bench.discord.gateway.closedWith[0]).not.toBe(1000)
    expect(bench.discord.gateway.identified).toBe(1)
    expect(bench.discord.gateway.mostOpen).toBe(1)
  })

  it.each([
    'not json',
    '{"op":9,"d":null}',
    '{"op":10,"d":null}',
    '[]',
    '{"op":0,"t":"READY","d":null}',
    'null',
  ])('a message that is not as it should be does no harm: %s', async (text) => {
    const { sink } = await bench.open()
    bench.discord.gateway.sendRaw(text)
    bench.discord.say('hola')
    await sink.until(() => sink.messages.length === 1)
    expect(sink.errors).toEqual([])
  })
})

describe('P3: closed is told while it tries again', () => {
  it('Discord that cannot be reached: closed once until it is, with growing pauses', async () => {
    const asked: number[] = []
    bench.discord.failNext(
      /gateway/,
      ...Array.from({ length: 4 }, () => ({ kind: 'error', status: 502 }) as const),
    )
    const { sink } = await bench.open({}, bench.sink(new RecordingSink({ clock: hastyClock(asked) })))
    expect(statuses(sink)).toEqual(['connecting', 'closed:Discord answered 502', 'open'])
    const pauses = asked.filter((ms) => ms !== 2_000 && ms !== 500)
    expect(pauses).toHaveLength(4)
    expect(pauses[3]).toBeGreaterThan(pauses[0]! * 3)
  })

  it('sessions of the day used up: it waits until Discord gives new ones', async () => {
    const asked: number[] = []
    bench.discord.sessionsLeft = 0
    const { sink, provider } = await bench.begin(
      {},
      bench.sink(new RecordingSink({ clock: hastyClock(asked) })),
    )
    await sink.until(() => provider.state.status === 'closed')
    expect(bench.discord.gateway.accepted).toBe(0)
    expect(asked).toContain(3_600_000)
    await provider.stop()
  })
})

describe('scenario 20: no connection after the end', () => {
  it('a timer that fires after the leadership was lost opens none', async () => {
    const due: (() => void)[] = []
    // Timers of this clock cannot be cancelled: they fire late, as a busy loop makes them.
    const stubborn: Clock = {
      ...hastyClock(),
      setTimeout: (fn, ms, options) => {
        if (ms < 1_000 || ms === 2_000) return systemClock.setTimeout(fn, ms, options)
        due.push(fn)
        return { cancel: () => {} }
      },
    }
    const { provider, sink, leadership } = await bench.open({}, new RecordingSink({ clock: stubborn }))
    bench.discord.gateway.close(4009)
    await sink.until(() => sink.states.at(-1)?.status === 'closed' && due.length > 0)
    const { accepted } = bench.discord.gateway
    const requests = bench.discord.requests.length
    leadership.abort()
    for (const fire of due) fire()
    await provider.stop()
    for (const fire of due) fire()
    expect(provider.state).toEqual({ status: 'closed', reason: 'leadership lost' })
    expect([bench.discord.gateway.accepted, bench.discord.requests.length]).toEqual([accepted, requests])
  })

  it('stopped at every moment of its connecting, it leaves no connection, and none comes later', async () => {
    for (let turns = 0; turns < 40; turns += 1) {
      const provider = bench.provider()
      const starting = provider.start(bench.sink(), new AbortController().signal)
      for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      await provider.stop()
      await starting.catch(() => {})
    }
    await bench.discord.until(({ gateway }) => gateway.open === 0)
    const { accepted } = bench.discord.gateway
    await new Promise((resolve) => setTimeout(resolve, 700)) // discord.js would connect again after 500 ms.
    expect(bench.discord.gateway.accepted).toBe(accepted)
    expect(bench.discord.gateway.mostOpen).toBe(1)
  })

  it('stopped while Discord does not greet: the connection is closed', async () => {
    bench.discord.gateway.greets = false
    const { provider } = await bench.begin()
    await bench.discord.until(({ gateway }) => gateway.open === 1)
    await provider.stop()
    await bench.discord.until(({ gateway }) => gateway.open === 0)
  })

  it('stopped while it waits to resume: nothing more is asked', async () => {
    const { provider, sink } = await bench.open({}, new RecordingSink())
    bench.discord.gateway.close(4009)
    await sink.until(() => provider.state.status === 'closed')
    await provider.stop()
    expect(bench.discord.gateway.accepted).toBe(1)
  })

  it('scenario 21: started twice, also while it starts: one connection', async () => {
    const { provider, sink } = await bench.open()
    await provider.start(new RecordingSink(), new AbortController().signal)
    bench.discord.say('hola')
    await sink.until(() => sink.messages.length === 1)
    expect(bench.discord.gateway.accepted).toBe(1)
  })
})
