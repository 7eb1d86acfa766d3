/**
 * The page's code blocks do what the page says when they run, as they stand, on a real Redis: each is loaded as a
 * module of its own, once for each replica, with what it takes from its surroundings as globals.
 */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Bot, type BotConfig, type Coordinator } from '@botmesh/core'
import { FakePlatform, FakeProvider, ManualClock } from '@botmesh/core/testing'
import { RedisStore } from '@botmesh/redis-store'
import { startRedis, waitFor, type RedisInstance } from '../support/index.js'
import { pageBlocks } from './page-blocks.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const blocks = pageBlocks()

let redis: RedisInstance
let dir: string
const started: Array<{ stop(): Promise<void> }> = []

/** A transport of which one replica may be connected at a time, as WhatsApp Web's. */
const platform = new FakePlatform()
class ExclusiveDouble extends FakeProvider {
  constructor({ session = 'tienda' }: { session?: string } = {}) {
    super({ id: `baileys:${session}`, capabilities: { exclusiveSession: true }, platform })
  }
}
// The real one would connect to WhatsApp; its own package tests it against a double of that protocol.
jest.unstable_mockModule('@botmesh/baileys', () => ({ BaileysProvider: ExclusiveDouble }))

/** Loads a block, as it stands, as a fresh module. `exports` names what the test wants to have of it. */
async function load<T>(n: number, globals: object, exports: string): Promise<T> {
  const text = blocks?.find((block) => block.n === n)?.text ?? ''
  const file = join(mkdtempSync(join(dir, 'replica-')), `block-${n}.ts`)
  writeFileSync(file, `${text}\nexport { ${exports} }\n`)
  Object.assign(globalThis, { Bot, ...globals })
  return (await import(file)) as T
}

interface Logged {
  fields: Record<string, unknown>
  text: string
}

function listeningLog() {
  const lines: Logged[] = []
  const add = (fields: Record<string, unknown>, text: string) => void lines.push({ fields, text })
  return { lines, log: { info: add, warn: add } }
}

function replica(config: Partial<BotConfig> & { provider: FakeProvider }) {
  const store = new RedisStore({ url: redis.url, prefix: 'tienda' })
  const coordinator = store.coordinator({ leaseMs: '3s' })
  const bot = new Bot({ store, coordination: { coordinator }, ...config })
  started.push(bot)
  return { store, coordinator, bot }
}

const isReady = (bot: Bot) => Promise.race([bot.ready.then(() => true), Promise.resolve(false)])

beforeEach(async () => {
  mkdirSync(join(ROOT, '.botmesh'), { recursive: true })
  dir = mkdtempSync(join(ROOT, '.botmesh/page-'))
  redis = await startRedis()
  process.env.REDIS_URL = redis.url
})

afterEach(async () => {
  await Promise.all(started.splice(0).map((one) => one.stop()))
  await redis.stop()
  rmSync(dir, { recursive: true, force: true })
  delete process.env.REDIS_URL
})

if (blocks === null) {
  it('the page is not beside this checkout: its code blocks cannot be run here', () => {
    expect(blocks).toBeNull()
  })
}

// Not skipped: where there is no page, there is nothing to run.
const describePage = blocks === null ? () => {} : describe
describePage('the page', () => {
  it('block 1 (P1, P4, Z7): the first replica connects, the second stands by and takes over', async () => {
    type Exports = { bot: Bot }
    const { bot: first } = await load<Exports>(1, {}, 'bot')
    started.push(first)
    await first.ready
    const { bot: second } = await load<Exports>(1, {}, 'bot')
    started.push(second)
    expect(await isReady(second)).toBe(false)
    await expect(second.send('100', 'hola')).rejects.toMatchObject({ code: 'PROVIDER_NOT_LEADER' })
    const start = performance.now()
    await first.stop()
    await second.ready
    expect(performance.now() - start).toBeLessThan(1_500)
  })

  it('block 2 (K1, H9): a conversation goes on in another replica, which reports it', async () => {
    type Exports = { bot: Bot }
    const shared = new FakePlatform()
    const make = async () => {
      const provider = new FakeProvider({ platform: shared })
      const store = new RedisStore({ url: redis.url, prefix: 'tienda' })
      const { log, lines } = listeningLog()
      const coordinator = store.coordinator({ leaseMs: '3s' })
      const { bot } = await load<Exports>(2, { provider, store, coordinator, log }, 'bot')
      bot
        .flow<{ size: string; colour: string }>('order', { on: 'order' })
        .ask('size', 'Size?')
        .ask('colour', 'Colour?')
        .persistent()
      started.push(bot)
      await bot.start()
      return { provider, lines }
    }
    const [one, two] = [await make(), await make()]
    await one.provider.receive({ id: 'm1', body: 'order' })
    expect((await one.provider.nextSent()).text).toBe('Size?')
    await two.provider.receive({ id: 'm2', body: 'M' })
    expect((await two.provider.nextSent()).text).toBe('Colour?')
    const line = await waitFor(() => two.lines[0], { what: 'the hand-over was reported' })
    expect(line.fields).toMatchObject({ name: 'order', outcome: 'resumed' })
    expect(one.lines).toEqual([])
  })

  it('block 3 (N3): the events come with what the page reads from them', async () => {
    const { log, lines } = listeningLog()
    const { bot } = replica({ provider: new ExclusiveDouble() })
    await load(3, { bot, log }, '')
    await bot.start()
    await bot.ready
    const leader = await waitFor(() => lines.find(({ fields }) => 'fence' in fields), { what: 'leader' })
    expect(leader.fields).toEqual({ name: 'provider:baileys:tienda', fence: expect.any(Number) })
    await bot.stop()
    const follower = await waitFor(() => lines.find(({ fields }) => 'reason' in fields && 'name' in fields), {
      what: 'follower',
    })
    expect(follower.fields).toMatchObject({ name: 'provider:baileys:tienda', reason: 'stopped' })
  })

  it('block 4 (J2): of all replicas one does the work at each interval', async () => {
    let sent = 0
    let tried = 0
    let finish = () => {}
    const work = new Promise<void>((resolve) => (finish = resolve))
    const enviarInforme = () => {
      sent += 1
      return work
    }
    const clocks: ManualClock[] = []
    for (const name of ['a', 'b']) {
      const clock = new ManualClock()
      clocks.push(clock)
      const store = new RedisStore({ url: redis.url, prefix: 'tienda' })
      const bot = new Bot({ provider: new FakeProvider({ id: `fake:${name}` }), store, clock })
      started.push(bot)
      const { coordinator } = await load<{ coordinator: Coordinator }>(
        4,
        { bot, store, enviarInforme },
        'coordinator',
      )
      const tryLead = coordinator.tryLead.bind(coordinator)
      coordinator.tryLead = async (job) => {
        const lead = await tryLead(job)
        tried += 1
        return lead
      }
      started.push(coordinator)
      await bot.start()
    }
    for (const clock of clocks) await clock.advance(5 * 60_000)
    await waitFor(() => tried === 2, { what: 'both replicas tried' })
    await waitFor(() => sent > 0, { what: 'the work began' })
    finish()
    expect(sent).toBe(1)
  })

  it('block 6 (X1, T1): bots that share a hub coordinate as replicas do', async () => {
    type Exports = { a: Bot; b: Bot }
    const shared = new FakePlatform()
    const [pa, pb] = [new FakeProvider({ platform: shared }), new FakeProvider({ platform: shared })]
    const { a, b } = await load<Exports>(6, { pa, pb }, 'a, b')
    const running: string[] = []
    for (const [name, bot] of Object.entries({ a, b })) {
      bot.onMessage(async (ctx) => {
        running.push(`${name} begins ${ctx.body}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
        running.push(`${name} ends ${ctx.body}`)
      })
      started.push(bot)
      await bot.start()
    }
    await pa.receive({ id: 'm1', body: '1' })
    await pb.receive({ id: 'm2', body: '2' })
    await waitFor(() => running.length === 4, { what: 'both messages were handled' })
    expect(running).toEqual(['a begins 1', 'a ends 1', 'b begins 2', 'b ends 2'])
  })
})
