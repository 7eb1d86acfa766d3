/** Scenario 18 with whole bots: replicas of a polling bot that share a coordination hub, and one Telegram. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, silentLogger } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { TelegramProvider } from '@botmesh/telegram'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import { TOKEN } from './samples.js'

const LEASE_MS = 1000

interface Replica {
  bot: Bot
  provider: TelegramProvider
  coordinator: MemoryCoordinator
}

let telegram: TelegramApiDouble
let hub: MemoryCoordinationHub
let store: MemoryStore
let replicas: Replica[]

beforeEach(async () => {
  telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
  hub = new MemoryCoordinationHub()
  store = new MemoryStore()
  replicas = []
})
afterEach(async () => {
  await Promise.all(replicas.map(({ bot }) => bot.stop()))
  await telegram.close()
})

async function addReplica(name: string): Promise<Replica> {
  const coordinator = new MemoryCoordinator({ hub, replicaId: name, leaseMs: LEASE_MS })
  const provider = new TelegramProvider({ token: TOKEN, account: 'tienda', apiRoot: telegram.url })
  const bot = new Bot({ provider, store, logger: silentLogger, coordination: { coordinator } })
  bot.onMessage((ctx) => ctx.reply(`${name}: ${ctx.body}`))
  const replica = { bot, provider, coordinator }
  replicas.push(replica)
  await bot.start()
  return replica
}

const answers = () => telegram.sent.map((call) => call.payload['text'])

describe('scenario 18: replicas of a long-polling bot', () => {
  it('one polls; on an orderly stop the other takes over in under a second, without a conflict or a double', async () => {
    const first = await addReplica('a')
    await first.bot.ready
    const second = await addReplica('b')
    expect(second.bot.health().role).toBe('follower')
    telegram.say(501001, 'one')
    await telegram.until(() => telegram.sent.length === 1)
    await telegram.until(() => telegram.openPolls === 1)

    const stopAt = performance.now()
    await first.bot.stop()
    await second.bot.ready
    telegram.say(501001, 'two')
    await telegram.until(() => telegram.sent.length === 2)
    expect(performance.now() - stopAt).toBeLessThan(1000)
    expect(answers()).toEqual(['a: one', 'b: two'])
    expect({ conflicts: telegram.conflicts, most: telegram.mostPolls }).toEqual({ conflicts: 0, most: 1 })
  })

  it('when the leader dies the other takes over within the lease and a second, and answers what waited', async () => {
    const first = await addReplica('a')
    await first.bot.ready
    const second = await addReplica('b')
    await telegram.until(() => telegram.openPolls === 1)
    const diedAt = performance.now()
    // A dead process renews nothing and closes its connections.
    first.coordinator.crash()
    await first.provider.stop()
    telegram.say(501001, 'anybody?')
    await second.bot.ready
    await telegram.until(() => telegram.sent.length === 1)
    expect(performance.now() - diedAt).toBeLessThan(LEASE_MS + 1000)
    expect(answers()).toEqual(['b: anybody?'])
    expect(telegram.mostPolls).toBe(1)
  })

  it('five rolling restarts under traffic: each message answered once, in order, never two pollers', async () => {
    let serving = await addReplica('r0')
    await serving.bot.ready
    let said = 0
    for (let round = 1; round <= 5; round++) {
      const next = await addReplica(`r${round}`)
      telegram.say(501001, `m${said++}`)
      const stopping = serving.bot.stop()
      telegram.say(501001, `m${said++}`)
      await stopping
      await next.bot.ready
      serving = next
    }
    await telegram.until(() => telegram.sent.length >= said && telegram.unconfirmed === 0)
    expect(answers().map((text) => String(text).split(': ')[1])).toEqual(
      Array.from({ length: said }, (_, index) => `m${index}`),
    )
    expect({ conflicts: telegram.conflicts, most: telegram.mostPolls }).toEqual({ conflicts: 0, most: 1 })
  })
})
