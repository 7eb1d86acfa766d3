/** A pause that WhatsApp asks for holds back the chat or the account concerned, and no other (scenario 16). */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Bot } from '@botmesh/core'
import { ManualClock } from '@botmesh/core/testing'
import { MetaProvider } from '@botmesh/meta'
import { GraphApiDouble } from '../../../test/doubles/graph-api.js'
import { PHONE_NUMBER_ID } from './samples.js'

let graph: GraphApiDouble
let clock: ManualClock
let bot: Bot
/** Resolves once a send was refused and the runtime knows it. */
let refused: Promise<void>

beforeEach(async () => {
  graph = await new GraphApiDouble().listen()
  clock = new ManualClock()
  const provider = new MetaProvider({
    phoneNumberId: PHONE_NUMBER_ID,
    accessToken: 'EAAtoken',
    appSecret: 'secret',
    verifyToken: 'verify',
    graphUrl: graph.url,
  })
  const send = provider.send.bind(provider)
  refused = new Promise((resolve) => {
    provider.send = (...args) =>
      send(...args).catch((error: unknown) => {
        setImmediate(resolve)
        throw error
      })
  })
  bot = new Bot({ provider, clock })
  await bot.start()
})
afterEach(async () => {
  await bot.stop()
  await graph.close()
})

/** Lets time pass until that many were sent; before `pauseMs` have passed only `allowed` may be. */
async function passUntil(count: number, pauseMs: number, allowed: readonly string[]): Promise<void> {
  for (let waitedMs = 0; graph.sends.length < count; waitedMs += 500) {
    if (waitedMs < pauseMs) expect(graph.sends.every((send) => allowed.includes(send.to))).toBe(true)
    await clock.advance(500)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('scenario 16: pauses', () => {
  it('131056: this user gets too many: others are served meanwhile', async () => {
    graph.failNext({ kind: 'error', status: 400, code: 131_056 })
    const held = bot.send({ chatId: '34600111222' }, 'one')
    await refused
    await bot.send({ chatId: '34600555666' }, 'two')
    await passUntil(2, 6_000, ['34600555666'])
    await held
    expect(graph.sends.map((send) => send.to)).toEqual(['34600555666', '34600111222'])
  })

  it('130429 with Retry-After: the whole number waits as long as was asked', async () => {
    graph.failNext({ kind: 'error', status: 429, code: 130_429, headers: { 'retry-after': '4' } })
    const sending = [bot.send({ chatId: '34600111222' }, 'one')]
    await refused
    sending.push(bot.send({ chatId: '34600555666' }, 'two'))
    await passUntil(2, 4_000, [])
    await Promise.all(sending)
  })
})
