/** Several replicas of one bot: the session goes from leader to leader (P1, P3, Z7, scenario 18 in kind). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Bot, CoordinationUnavailableError, MemoryStore, type MessageLog } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { DM } from '../../../test/doubles/discord/index.js'
import { waitFor } from '../../../test/support/index.js'
import { Bench, hastyClock, sharedLog, SinkWithLog } from './support/bench.js'

let bench: Bench
let log: MessageLog
beforeEach(async () => {
  bench = await Bench.start()
  log = sharedLog()
})
afterEach(() => bench.stop())

const lead = () => bench.open({ account: 'tienda' }, bench.sink(new SinkWithLog(log, hastyClock())))

describe('the gateway session outlives its leader', () => {
  it('Z7: stopped in order, the next leader resumes it, and gets what was written in between, once', async () => {
    const first = await lead()
    bench.discord.say('uno')
    await first.sink.until(({ messages }) => messages.length === 1)
    first.leadership.abort(new CoordinationUnavailableError('stopped'))
    await first.provider.stop()
    bench.discord.say('dos')
    const second = await lead()
    await second.sink.until(({ messages }) => messages.length === 1)
    bench.discord.say('tres')
    await second.sink.until(({ messages }) => messages.length === 2)
    expect([first.sink.bodies, second.sink.bodies]).toEqual([['uno'], ['dos', 'tres']])
    const { identified, resumed, mostOpen } = bench.discord.gateway
    expect({ identified, resumed, mostOpen }).toEqual({ identified: 1, resumed: 1, mostOpen: 1 })
  })

  it('what the runtime had not accepted comes again to the next leader', async () => {
    const first = await lead()
    first.sink.accept = async ({ body }) => {
      if (body === 'dos') throw new Error('The journal cannot be reached.')
    }
    for (const body of ['uno', 'dos']) bench.discord.say(body)
    bench.discord.say('tres', { channel_id: '601009000000000001' })
    await first.sink.until(({ bodies }) => bodies.length === 2)
    await first.provider.stop()
    const second = await lead()
    await second.sink.until(({ messages }) => messages.length >= 2)
    // From the first that was missed on: what follows is known by its id.
    expect(second.sink.bodies).toEqual(['dos', 'tres'])
  })

  it('a leader that was killed left a record that is a second old at most', async () => {
    const first = await lead()
    bench.discord.say('uno')
    await first.sink.until(({ messages }) => messages.length === 1)
    await waitFor(async () => (await log.read('discord:tienda:session', null)).length > 0, {
      what: 'a record',
    })
    await new Promise((resolve) => setTimeout(resolve, 120)) // A second by the hasty clock, and a little more.
    bench.discord.gateway.drop()
    bench.discord.gateway.refuseWith = 4010
    await first.sink.until(({ errors }) => errors.length > 0)
    bench.discord.gateway.refuseWith = undefined
    bench.discord.say('dos')
    const second = await lead()
    await second.sink.until(({ messages }) => messages.length === 1)
    expect(second.sink.bodies).toEqual(['dos'])
  })

  it('a session that Discord has forgotten is begun anew', async () => {
    const first = await lead()
    await first.provider.stop()
    bench.discord.gateway.sessions.clear()
    const second = await lead()
    bench.discord.say('hola')
    await second.sink.until(({ messages }) => messages.length === 1)
    expect(bench.discord.gateway.identified).toBe(2)
  })

  it.each(['{', '{"sessionId":""}', '{"sessionId":"x","sequence":1,"resumeURL":"http://example.com"}'])(
    'a record that is not one is ignored: %s',
    async (payload) => {
      await log.append('discord:tienda:session', payload)
      await lead()
      expect(bench.discord.gateway.identified).toBe(1)
    },
  )

  it('a store that does not answer holds up neither start nor stop', async () => {
    const silent: MessageLog = {
      append: () => new Promise(() => {}),
      read: () => new Promise(() => {}),
      subscribe: () => new Promise(() => {}),
    }
    const { provider } = await bench.open({}, bench.sink(new SinkWithLog(silent, hastyClock())))
    await provider.stop()
    expect(provider.state.status).toBe('closed')
  })

  it('a leader that lost its leadership writes no record', async () => {
    const { provider, leadership, sink } = await lead()
    await waitFor(async () => (await log.read('discord:tienda:session', null)).length > 0, {
      what: 'a record',
    })
    bench.discord.say('uno')
    await sink.until(({ messages }) => messages.length === 1)
    const before = await log.read('discord:tienda:session', null)
    leadership.abort(new Error('lost'))
    await provider.stop()
    expect(await log.read('discord:tienda:session', null)).toEqual(before)
  })

  it('without a log the session ends with its leader', async () => {
    const { provider } = await bench.open()
    await provider.stop()
    await bench.discord.until(({ gateway }) => gateway.open === 0)
    expect(bench.discord.gateway.closedWith).toEqual([1000])
  })
})

describe('two bots', () => {
  const bots: Bot[] = []
  afterEach(() => Promise.all(bots.splice(0).map((bot) => bot.stop())))

  async function two(providerDownMs: number): Promise<[Bot, Bot]> {
    const hub = new MemoryCoordinationHub()
    const store = new MemoryStore()
    const make = async (replicaId: string) => {
      const bot = new Bot({
        provider: bench.provider({ commands: [{ name: 'pedido', description: 'Haz un pedido' }] }),
        store,
        coordination: {
          coordinator: new MemoryCoordinator({ hub, replicaId, leaseMs: 1500 }),
          providerDownMs,
        },
      })
      bot.onMessage((ctx) => ctx.reply(`${replicaId}: ${ctx.body}`))
      bot.on('error', () => {})
      bots.push(bot)
      await bot.start()
      return bot
    }
    const first = await make('a')
    await first.ready
    return [first, await make('b')]
  }
  const said = () => bench.discord.sent.map(({ body }) => body['content'])

  it('P3: Discord closes the leader’s session for good: it resigns after providerDownMs, the standby connects', async () => {
    const [a, b] = await two(300)
    expect([a.health().role, b.health().role]).toEqual(['leader', 'follower'])
    const resigned = new Promise((resolve) => a.on('coordination:follower', ({ reason }) => resolve(reason)))
    bench.discord.gateway.refuseWith = 4010
    bench.discord.gateway.close(4000)
    await bench.discord.until(({ gateway }) => gateway.accepted === 2 && gateway.open === 0)
    bench.discord.gateway.refuseWith = undefined
    expect(await resigned).toBe('transport-down')
    await b.ready
    bench.discord.say('hola')
    await waitFor(() => said().length > 0, { what: 'an answer' })
    expect(said()).toEqual(['b: hola'])
    expect(bench.discord.gateway.mostOpen).toBe(1)
  })

  it('P1, P4: the standby makes no call; commands are registered by the leader only, once a leader', async () => {
    const [a, b] = await two(60_000)
    await bench.discord.until(({ commands }) => commands.length === 1)
    const puts = () => bench.discord.requests.filter((route) => route.startsWith('PUT '))
    expect(puts()).toHaveLength(1)
    await expect(b.send(DM, 'hola')).rejects.toMatchObject({ code: 'PROVIDER_NOT_LEADER' })
    expect(bench.discord.requests.filter((route) => route === 'GET /gateway/bot')).toHaveLength(1)
    const stopped = performance.now()
    await a.stop()
    await b.ready
    expect(performance.now() - stopped).toBeLessThan(1_000)
    await waitFor(() => puts().length === 2, { what: 'the new leader registers' })
    expect(bench.discord.gateway.mostOpen).toBe(1)
  })

  it('a command is deferred at once and answered in its place, by reply', async () => {
    await two(60_000)
    const { token } = bench.discord.interact({ data: { id: '1', type: 1, name: 'pedido' } })
    await bench.discord.until(({ sent }) => sent.length === 1)
    expect(bench.discord.acknowledged.get(token)).toBe(5)
    expect(bench.discord.sent[0]).toMatchObject({
      route: expect.stringMatching(/^PATCH .*@original$/),
      body: { content: 'a: /pedido' },
    })
    bench.discord.say('hola')
    await bench.discord.until(({ sent }) => sent.length === 2)
    expect(bench.discord.sent[1]?.route).toBe(`POST /channels/${DM}/messages`)
  })
})
