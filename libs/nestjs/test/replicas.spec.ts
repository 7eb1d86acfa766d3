/** Two applications over one store behave as two processes: a conversation goes on where the next message arrives. */
import { describe, expect, it } from '@jest/globals'
import { Injectable } from '@nestjs/common'
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter'
import { Bot, ConversationContext, MemoryStore, StepContext, type BotEvents } from '@botmesh/core'
import { BotmeshModule, Conversation, Flow, Persistent, Step } from '../src/index.js'
import { runApp, until } from './test-app.js'
import { TestProvider } from './test-provider.js'

interface OrderState {
  size: string
}

@Flow('order', { on: 'order' })
@Persistent()
class OrderFlow {
  @Step() async size(c: StepContext<OrderState>) {
    c.state.size = await c.ask('size?')
  }
  @Step() async address(c: StepContext<OrderState>) {
    await c.say(`${c.state.size} to ${await c.ask('address?')}`)
  }
}

@Injectable()
class Survey {
  @Conversation('survey', { on: 'survey' })
  async survey(c: ConversationContext) {
    await c.say(`thanks for ${await c.ask('score?')}`)
  }
}

@Injectable()
class Handovers {
  events: BotEvents['coordination:handover'][] = []
  @OnEvent('coordination:handover') add(event: BotEvents['coordination:handover']) {
    this.events.push(event)
  }
}

async function replica(store: MemoryStore, replicaId: string, durability = false) {
  const provider = new TestProvider()
  const coordinator = store.coordinator({ replicaId, leaseMs: 1000 })
  const { app } = await runApp({
    imports: [
      EventEmitterModule.forRoot(),
      BotmeshModule.forRoot({
        provider,
        store,
        durability,
        coordination: { coordinator, handover: { fallback: 'notify', notifyMessage: 'sorry' } },
      }),
    ],
    providers: [OrderFlow, Survey, Handovers],
  })
  return { app, bot: app.get(Bot), provider, coordinator, handovers: app.get(Handovers).events }
}

describe('two replicas', () => {
  it('K1, H9: a decorated flow goes on at the other one, which tells its listeners', async () => {
    const store = new MemoryStore()
    const [a, b] = [await replica(store, 'a'), await replica(store, 'b')]
    await a.provider.deliver('ana', 'order')
    await a.provider.replies('ana', 1)
    await b.provider.deliver('ana', 'M')
    expect(await b.provider.replies('ana', 1)).toEqual(['address?'])
    await a.provider.deliver('ana', 'Main Street 1')
    expect(await a.provider.replies('ana', 2)).toEqual(['size?', 'M to Main Street 1'])
    await until(() => a.handovers.length === 1 && b.handovers.length === 1)
    expect(b.handovers[0]).toMatchObject({ bot: 'default', name: 'order', outcome: 'resumed' })
  })

  it('K1: after a death the other one goes on from what was stored', async () => {
    const store = new MemoryStore()
    const [a, b] = [await replica(store, 'a'), await replica(store, 'b')]
    await a.provider.deliver('ana', 'order')
    await a.provider.replies('ana', 1)
    // Sent is not yet stored: a crash in between asks once more (H11).
    await until(() => a.bot.health().inFlight === 0)
    a.coordinator.crash()
    await b.provider.deliver('ana', 'S')
    expect(await b.provider.replies('ana', 1)).toEqual(['address?'])
  })

  it('D1, H7: killed while it asks the next question, with durability: the answer before is not taken for it too', async () => {
    const store = new MemoryStore()
    const [a, b] = [await replica(store, 'a', true), await replica(store, 'b', true)]
    await a.provider.deliver('ana', 'order')
    await a.provider.replies('ana', 1)
    await until(() => a.bot.health().inFlight === 0)
    a.provider.silent = true
    await a.provider.deliver('ana', 'M')
    await a.provider.replies('ana', 2)
    a.coordinator.crash()
    await b.provider.deliver('ana', 'Main Street 1')
    // Whether `address?` was sent is unknown to b, so it is not asked twice.
    expect(await b.provider.replies('ana', 1)).toEqual(['M to Main Street 1'])
  })

  it('H6: an asynchronous conversation cannot move; the person is told', async () => {
    const store = new MemoryStore()
    const [a, b] = [await replica(store, 'a'), await replica(store, 'b')]
    await a.provider.deliver('ana', 'survey')
    await a.provider.replies('ana', 1)
    await a.app.close()
    await b.provider.deliver('ana', '5')
    expect(await b.provider.replies('ana', 1)).toEqual(['sorry'])
    await until(() => b.handovers.length === 1)
    expect(b.handovers[0]).toMatchObject({ name: 'survey', outcome: 'notified', reason: 'async' })
  })
})

describe('scenario 26', () => {
  it('a rollout that waits for each new replica to be ready replaces leader and standby, one transport at a time', async () => {
    const store = new MemoryStore()
    const providers: TestProvider[] = []
    const start = async (replicaId: string) => {
      const provider = new TestProvider({ exclusive: true })
      providers.push(provider)
      const coordination = { coordinator: store.coordinator({ replicaId, leaseMs: 1000 }) }
      return await runApp({
        imports: [BotmeshModule.forRoot({ provider, store, coordination, health: { standby: 'ready' } })],
      })
    }
    const ready = async ({ url }: { url: string }) => (await fetch(`${url}/health/ready`)).status === 200
    const open = () => providers.filter((one) => one.state.status === 'open').length
    const old = [await start('old-1'), await start('old-2')]
    await until(() => open() === 1)
    for (const [index, one] of old.entries()) {
      const fresh = await start(`new-${index}`)
      await until(() => ready(fresh))
      await one.app.close()
      await until(() => open() > 0)
      expect(open()).toBe(1)
    }
    expect(providers.slice(0, 2).map((one) => one.state.status)).toEqual(['closed', 'closed'])
  })
})
