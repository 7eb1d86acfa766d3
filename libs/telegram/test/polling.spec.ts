/** Long polling against the double: one poller, nothing lost, quick to go and quick to come (P1, 18, 20, 21). */
import { describe, expect, it } from '@jest/globals'
import { CoordinationUnavailableError, LeaseLostError } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { HeldClock } from './held-clock.js'
import { lead, make, telegram } from './polling-replica.js'

/** Holds up whatever the runtime is given until it is opened. */
function gateOf(sink: RecordingSink) {
  let open = () => {}
  let reach = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  const reached = new Promise<void>((resolve) => (reach = resolve))
  sink.accept = () => {
    reach()
    return opened
  }
  return { reached, open: () => open() }
}

describe('receiving by long poll', () => {
  it('P1, P2: is exclusive, and delivers in order', async () => {
    const { provider, sink } = await lead()
    expect(provider.capabilities.exclusiveSession).toBe(true)
    expect(provider.handle).toBeUndefined()
    expect(provider.id).toBe('telegram:tienda')
    for (let index = 0; index < 20; index++) telegram.say(501001 + (index % 3), `m${index}`)
    await sink.until(() => sink.messages.length === 20)
    for (const chat of ['501001', '501002', '501003']) {
      const numbers = sink.messages
        .filter((one) => one.chatId === chat)
        .map((one) => Number(one.body.slice(1)))
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    }
    expect(sink.states).toEqual([{ status: 'connecting' }, { status: 'open' }])
  })

  it('takes what waited before it came', async () => {
    telegram.say(501001, 'one')
    telegram.say(501001, 'two')
    const { sink } = await lead()
    await sink.until(() => sink.messages.length === 2)
    expect(sink.bodies).toEqual(['one', 'two'])
  })

  it('D1: an update is confirmed only once the runtime accepted it', async () => {
    const sink = new RecordingSink()
    const gate = gateOf(sink)
    await lead({ sink })
    telegram.say(501001, 'slow')
    await gate.reached
    const { polls } = telegram
    expect(telegram.unconfirmed).toBe(1)
    gate.open()
    await telegram.until(() => telegram.polls === polls + 1)
    expect(telegram.unconfirmed).toBe(0)
    expect(sink.bodies).toEqual(['slow'])
  })

  it('scenario 14: a refused message is asked for again; later ones of its chat do not overtake it, others go on', async () => {
    const sink = new RecordingSink()
    let refusals = 2
    sink.accept = async (message) => {
      if (message.body === 'A' && refusals-- > 0) throw new Error('journal unreachable')
    }
    telegram.say(501001, 'A')
    telegram.say(501001, 'B')
    telegram.say(501002, 'C')
    await lead({ sink })
    await sink.until(() => sink.messages.length === 3)
    expect(sink.bodies).toEqual(['C', 'A', 'B'])
    await telegram.until(() => telegram.unconfirmed === 0)
    expect(sink.bodies).toEqual(['C', 'A', 'B'])
    expect(sink.logs.filter((log) => log.level === 'warn')).toHaveLength(2)
  })

  it('button presses are acknowledged once accepted', async () => {
    const { sink } = await lead()
    telegram.push({
      callback_query: {
        id: '77',
        from: { id: 501001, is_bot: false },
        data: 'size:M',
        message: { message_id: 5, chat: { id: 501001, type: 'private' }, date: 0 },
      },
    })
    await telegram.until(() => telegram.calls.length === 1)
    expect(telegram.calls[0]).toMatchObject({
      method: 'answerCallbackQuery',
      payload: { callback_query_id: '77' },
    })
    expect(sink.messages[0]).toMatchObject({ type: 'button', buttonId: 'size:M' })
  })

  it('removes a webhook that was left over, once', async () => {
    telegram.webhook = { url: 'http://127.0.0.1:9/', secret: 's' }
    const { sink } = await lead()
    expect(telegram.webhook).toBeNull()
    expect(sink.logs.some((log) => log.message.includes('webhook is registered'))).toBe(true)
  })
})

describe('scenario 18: rolling deploy of a polling bot', () => {
  it('on stop the poll ends at once, what was accepted is confirmed, and the next one takes over in under a second', async () => {
    const first = await lead()
    telegram.say(501001, 'before')
    await first.sink.until(() => first.sink.messages.length === 1)
    await telegram.until(() => telegram.openPolls === 1)
    const stopAt = performance.now()
    await first.provider.stop()
    expect(telegram.openPolls).toBe(0)
    expect(telegram.unconfirmed).toBe(0)
    const second = await lead()
    telegram.say(501001, 'after')
    await second.sink.until(() => second.sink.messages.length === 1)
    expect(performance.now() - stopAt).toBeLessThan(1000)
    expect(second.sink.bodies).toEqual(['after'])
    expect(first.sink.bodies).toEqual(['before'])
    expect(first.provider.state).toEqual({ status: 'closed', reason: 'stopped' })
    expect({ conflicts: telegram.conflicts, most: telegram.mostPolls }).toEqual({ conflicts: 0, most: 1 })
  })

  it('N5: an orderly stop that aborts the signal first confirms too', async () => {
    const { provider, sink, leadership } = await lead()
    telegram.say(501001, 'before')
    await sink.until(() => sink.messages.length === 1)
    await telegram.until(() => telegram.openPolls === 1)
    leadership.abort(new CoordinationUnavailableError('stopped'))
    await provider.stop()
    expect(provider.state).toEqual({ status: 'closed', reason: 'stopped' })
    expect(telegram.unconfirmed).toBe(0)
    const next = await lead()
    expect(next.sink.messages).toEqual([])
  })

  it('ten hand-overs under traffic: every update exactly once, one poller at any time, no conflict', async () => {
    const bodies: string[] = []
    let sent = 0
    for (let round = 0; round < 10; round++) {
      const replica = await lead()
      telegram.say(501001, `m${sent++}`)
      telegram.say(501001, `m${sent++}`)
      await replica.sink.until(() => replica.sink.messages.length >= 1)
      await replica.provider.stop()
      bodies.push(...replica.sink.bodies)
    }
    const last = await lead()
    await telegram.until(() => telegram.unconfirmed === 0)
    bodies.push(...last.sink.bodies)
    expect(bodies).toEqual(Array.from({ length: sent }, (_, index) => `m${index}`))
    expect({ conflicts: telegram.conflicts, most: telegram.mostPolls }).toEqual({ conflicts: 0, most: 1 })
  })

  it('stops within its bound while the runtime does not answer, and the message comes again', async () => {
    const sink = new RecordingSink({ clock: new HeldClock() })
    const gate = gateOf(sink)
    telegram.say(501001, 'stuck')
    const { provider } = await lead({ sink })
    await gate.reached
    const stopping = provider.stop()
    const clock = sink.clock as HeldClock
    await clock.armed()
    expect(clock.nextMs).toBe(3000)
    clock.advance(3000)
    await stopping
    const next = await lead()
    await next.sink.until(() => next.sink.messages.length === 1)
    expect(next.sink.bodies).toEqual(['stuck'])
  })
})

describe('scenario 20: a leadership that is lost', () => {
  it('cuts the poll at once, and nothing is polled or confirmed afterwards', async () => {
    const { provider, sink, leadership } = await lead()
    await telegram.until(() => telegram.openPolls === 1)
    const { polls } = telegram
    leadership.abort(new LeaseLostError('lead:provider:telegram:tienda', 'expired'))
    await telegram.until(() => telegram.openPolls === 0)
    await sink.until(() => provider.state.status === 'closed')
    expect(provider.state).toEqual({ status: 'closed', reason: 'leadership lost' })
    await provider.stop()
    expect(telegram.polls).toBe(polls)
  })

  it('the retry timer that was set before fires after it: no poll', async () => {
    const clock = new HeldClock()
    const sink = new RecordingSink({ clock })
    const provider = make()
    const leadership = new AbortController()
    telegram.failNext('getUpdates', { kind: 'error', code: 502, description: 'Bad Gateway' })
    await provider.start(sink, leadership.signal)
    await sink.until(() => provider.state.status === 'closed')
    const polls = telegram.methods.filter((method) => method === 'getUpdates').length
    expect(polls).toBe(1)
    leadership.abort()
    clock.advance(120_000)
    await provider.stop()
    expect(telegram.methods.filter((method) => method === 'getUpdates')).toHaveLength(1)
  })

  it('messages that were fetched but not handed over yet are left to the next leader', async () => {
    const sink = new RecordingSink()
    const gate = gateOf(sink)
    telegram.say(501001, 'one')
    telegram.say(501001, 'two')
    const { provider, leadership } = await lead({ sink })
    await gate.reached
    leadership.abort()
    gate.open()
    await provider.stop()
    expect(sink.bodies).toEqual(['one'])
    const next = await lead()
    await next.sink.until(() => next.sink.messages.length === 2)
    // Not confirmed, so that "one" comes again too: the runtime drops the copy by its id (Z3).
    expect(next.sink.bodies).toEqual(['one', 'two'])
    expect(next.sink.messages[0]!.id).toBe(sink.messages[0]!.id)
  })
})

describe('scenario 21 and the life cycle', () => {
  it('started twice, or by two modules: one poller, the first sink', async () => {
    const provider = make()
    const [one, two] = [new RecordingSink(), new RecordingSink()]
    const { signal } = new AbortController()
    await Promise.all([provider.start(one, signal), provider.start(two, signal)])
    await provider.start(two, signal)
    await telegram.until(() => telegram.openPolls === 1)
    telegram.say(501001, 'hola')
    await one.until(() => one.messages.length === 1)
    expect(two.messages).toEqual([])
    expect(telegram.mostPolls).toBe(1)
  })

  it('start, stop, start works; stop is idempotent; stop while starting ends closed', async () => {
    const provider = make()
    const sink = new RecordingSink()
    const { signal } = new AbortController()
    await provider.stop()
    await provider.start(sink, signal)
    await Promise.all([provider.stop(), provider.stop()])
    await provider.start(sink, signal)
    telegram.say(501001, 'again')
    await sink.until(() => sink.messages.length === 1)
    await provider.stop()
    const starting = provider.start(sink, signal)
    await provider.stop()
    await starting
    expect(provider.state.status).toBe('closed')
    expect(telegram.openPolls).toBe(0)
    expect(telegram.mostPolls).toBe(1)
  })

  it('started again right after its leadership was lost: the old poll ends first', async () => {
    const { provider, leadership } = await lead()
    await telegram.until(() => telegram.openPolls === 1)
    leadership.abort()
    const sink = new RecordingSink()
    await provider.start(sink, new AbortController().signal)
    telegram.say(501001, 'new')
    await sink.until(() => sink.messages.length === 1)
    expect({ conflicts: telegram.conflicts, most: telegram.mostPolls }).toEqual({ conflicts: 0, most: 1 })
  })
})
