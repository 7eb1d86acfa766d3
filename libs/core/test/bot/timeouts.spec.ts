/** Timeouts of waits that outlive the replicas that knew of them (ADR 8, H10, T5, D2): who fires them, and once. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, type BotConfig } from '../../src/index.js'
import { FakePlatform, FakeProvider, ManualClock } from '../../src/testing/index.js'
import { Mesh, type MeshOptions, type Replica } from './support/mesh.js'
import { asking, durableMesh, KEY, kill, TIMEOUT_MS } from './support/timeouts.js'

let mesh: Mesh

afterEach(() => mesh.stop())

async function one(define: (bot: Bot) => void, options?: MeshOptions): Promise<Replica> {
  mesh = durableMesh(define, options)
  return mesh.add()
}

for (const placement of ['shared', 'separate'] as const) {
  describe(`turns and data ${placement}`, () => {
    it.each([
      ['persistent', 'resumed'],
      ['forwarded', 'forwarded'],
    ])('H10: fires once, though every replica that knew of it died (%s flow)', async (how, outcome) => {
      const persistent = how === 'persistent'
      // By default what is forwarded lives as long as its wait: it must still be there when the timeout acts.
      const a = await one(asking(persistent), {
        placement,
        config: { conversation: { timeout: TIMEOUT_MS } },
        ...(persistent ? {} : { coordination: { handover: { flows: 'forward' } } }),
      })
      await mesh.tell(a, 'order')
      kill(a)
      await mesh.clock.advance(20_000)
      const [b, c] = [await mesh.add(), await mesh.add()]
      await mesh.clock.advance(TIMEOUT_MS - 25_000)
      expect(mesh.said).toEqual(['Welcome, 100', 'Size?'])
      await mesh.clock.advance(20_000)
      expect(mesh.said).toEqual([
        'Welcome, 100',
        'Size?',
        expect.stringMatching(/^Too late, says replica-[12]$/),
      ])
      const handovers = [b, c].flatMap((replica) => mesh.payloads(replica, 'coordination:handover'))
      expect(handovers).toMatchObject([{ key: KEY, name: 'order', outcome }])
      await mesh.clock.advance(10 * TIMEOUT_MS)
      expect(mesh.said).toHaveLength(3)
      expect(await mesh.store.getCheckpoint(KEY)).toBeNull()
      expect([...b.errors, ...c.errors]).toEqual([])
    })

    it('an answer cancels it, also one that another replica gets', async () => {
      const a = await one(asking(), { placement })
      await mesh.tell(a, 'order')
      const b = await mesh.add()
      await mesh.tell(b, 'M')
      await mesh.tell(b, 'order', { chatId: '200' })
      await mesh.tell(b, 'L', { chatId: '200' })
      kill(a)
      kill(b)
      await mesh.add()
      await mesh.clock.advance(3 * TIMEOUT_MS)
      expect(mesh.said).toEqual(['Welcome, 100', 'Size?', 'Size M', 'Welcome, 200', 'Size?', 'Size L'])
    })

    it('T5, scenario 31: the timer of a replica that lives comes first, and no other one acts', async () => {
      const a = await one(asking(), { placement })
      const b = await mesh.add()
      await mesh.tell(a, 'order')
      await mesh.clock.advance(3 * TIMEOUT_MS)
      expect(mesh.said).toEqual(['Welcome, 100', 'Size?', 'Too late, says replica-0'])
      expect(mesh.payloads(b, 'coordination:handover')).toEqual([])
    })

    it('T5: a frozen owner that wakes after another replica has acted says nothing', async () => {
      const a = await one(asking(), { placement })
      await mesh.add()
      await mesh.tell(a, 'order')
      a.clock.pause()
      await mesh.clock.advance(2 * TIMEOUT_MS)
      a.clock.resume()
      await mesh.clock.advance(TIMEOUT_MS)
      expect(mesh.said).toEqual(['Welcome, 100', 'Size?', 'Too late, says replica-1'])
    })

    it('D2: a replica that dies between its send and its commit has sent; the next one acts and does not repeat it', async () => {
      const acted: string[] = []
      const a = await one(
        (bot) =>
          void bot
            .flow('order', { on: 'order' })
            .step('size', async (c) => {
              await c.ask('Size?', { timeout: TIMEOUT_MS }).catch(() => undefined)
              await c.say('Too late')
              acted.push(bot.name)
              if (bot.name !== 'replica-2') await new Promise<void>(() => undefined)
              await c.say('Bye')
            })
            .persistent(),
        { placement },
      )
      await mesh.tell(a, 'order')
      // The owner itself is the first one to die of it.
      await mesh.until(() => acted.length === 1)
      await mesh.clock.advance(1000)
      kill(a)
      const b = await mesh.add()
      await mesh.until(() => acted.length === 2)
      await mesh.clock.advance(1000)
      kill(b)
      await mesh.add()
      await mesh.until(() => acted.length === 3)
      await mesh.clock.advance(3 * TIMEOUT_MS)
      expect(acted).toEqual(['replica-0', 'replica-1', 'replica-2'])
      expect(mesh.said).toEqual(['Size?', 'Too late', 'Bye'])
      expect(await mesh.store.outbox.entries(KEY)).toEqual([])
    })

    it('D2: an owner that was only frozen meets what a replica that died in its place has sent', async () => {
      let acted = 0
      const a = await one(
        (bot) =>
          void bot
            .flow('order', { on: 'order' })
            .step('size', async (c) => {
              await c.ask('Size?', { timeout: TIMEOUT_MS }).catch(() => undefined)
              await c.say('Too late')
              acted += 1
              if (bot.name === 'replica-1') await new Promise<void>(() => undefined)
            })
            .persistent(),
        { placement },
      )
      const b = await mesh.add()
      await mesh.tell(a, 'order')
      a.clock.pause()
      await mesh.until(() => acted === 1)
      kill(b)
      a.clock.resume()
      await mesh.until(() => acted === 2)
      await mesh.clock.advance(TIMEOUT_MS)
      expect(mesh.said).toEqual(['Size?', 'Too late'])
    })
  })
}

describe('who fires it', () => {
  it('without durability nobody: it lived in memory', async () => {
    const a = await one(asking(), { config: { durability: false } })
    await mesh.tell(a, 'order')
    kill(a)
    await mesh.add()
    await mesh.clock.advance(5 * TIMEOUT_MS)
    expect(mesh.said).toEqual(['Welcome, 100', 'Size?'])
  })

  it('P4: of an exclusive transport, whoever leads it now', async () => {
    const a = await one(asking(), { exclusive: true })
    const b = await mesh.add()
    await mesh.run(a.bot.ready)
    await mesh.tell(a, 'order')
    await mesh.run(a.bot.stop())
    await mesh.run(b.bot.ready)
    await mesh.clock.advance(2 * TIMEOUT_MS)
    expect(mesh.said).toEqual(['Welcome, 100', 'Size?', 'Too late, says replica-1'])
  })

  it('B1: without coordination, the process that was started again', async () => {
    const clock = new ManualClock()
    const platform = new FakePlatform()
    const store = new MemoryStore({ clock })
    mesh = new Mesh(() => undefined)
    const start = async (name: string) => {
      const provider = new FakeProvider({ platform })
      const config: BotConfig = { name, provider, store, clock, durability: true }
      const bot = new Bot(config)
      asking()(bot)
      await Promise.all([bot.start(), clock.advance(10)])
      return { bot, provider }
    }
    const first = await start('first')
    await Promise.all([first.provider.receive({ body: 'order', id: '1' }), clock.advance(10)])
    await Promise.all([first.bot.stop(), clock.advance(20_000)])
    await clock.advance(2 * TIMEOUT_MS)
    const second = await start('second')
    await clock.advance(10_000)
    const said = () => platform.sent.map(({ text }) => text)
    expect(said()).toEqual(['Welcome, 100', 'Size?', 'Too late, says second'])
    // A live process needs no second look at its own waits.
    await Promise.all([second.provider.receive({ body: 'order', id: '2' }), clock.advance(10)])
    await clock.advance(3 * TIMEOUT_MS)
    expect(said().slice(3)).toEqual(['Welcome, 100', 'Size?', 'Too late, says second'])
    await Promise.all([second.bot.stop(), clock.advance(20_000)])
  })
})
