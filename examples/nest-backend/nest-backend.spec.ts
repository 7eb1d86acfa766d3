/** The backend and its bot: an order by chat is an order of the backend; on Express and on Fastify. */
import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import type { INestApplication } from '@nestjs/common'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import { MemoryStore } from '@botmesh/core'
import { FakePlatform, FakeProvider } from '@botmesh/core/testing'
import { AppModule } from './app.module.js'

async function start(app: INestApplication): Promise<string> {
  await app.listen(0, '127.0.0.1')
  return (await app.getUrl()).replace('[::1]', 'localhost')
}

describe('examples: a Nest backend with a bot', () => {
  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ] as const)('N1: on %s', async (_name, adapter) => {
    const provider = new FakeProvider()
    const bot = AppModule.with({ provider, store: new MemoryStore(), shutdownHooksWarning: false })
    const testing = await Test.createTestingModule({ imports: [bot] }).compile()
    const app = testing.createNestApplication(adapter())
    const url = await start(app)
    for (const [said, answer] of [
      ['order', 'Which size?'],
      ['XS', 'S, M or L, please.'],
      ['M', 'Where shall it go?'],
      ['Main Street 1', 'M, to Main Street 1. All right?'],
      ['no', 'Which size?'],
      ['L', 'Where shall it go?'],
      ['Main Street 2', 'L, to Main Street 2. All right?'],
      ['yes', 'That is order 1.'],
    ] as const) {
      await provider.receive(said)
      expect((await provider.nextSent()).text).toBe(answer)
    }
    const orders = await fetch(`${url}/orders`)
    expect(await orders.json()).toEqual([{ size: 'L', address: 'Main Street 2' }])
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    await app.close()
  })

  // --- two replicas
  it('N1, K1: two replicas of it over one store', async () => {
    const store = new MemoryStore()
    const platform = new FakePlatform()
    const replica = async (replicaId: string) => {
      const provider = new FakeProvider({ platform })
      const coordinator = store.coordinator({ replicaId })
      const bot = AppModule.with({
        provider,
        store,
        coordination: { coordinator },
        shutdownHooksWarning: false,
      })
      const app = (await Test.createTestingModule({ imports: [bot] }).compile()).createNestApplication()
      await app.init()
      return { app, provider }
    }
    const [a, b] = [await replica('a'), await replica('b')]

    await a.provider.receive('order')
    expect((await a.provider.nextSent()).text).toBe('Which size?')
    await a.app.close() // A deploy.
    await b.provider.receive('M')
    expect((await b.provider.nextSent()).text).toBe('Where shall it go?')
    await b.app.close()
  })
  // --- end
})
