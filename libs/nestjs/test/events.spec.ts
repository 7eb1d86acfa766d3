/** Events of bots at `@OnEvent` listeners (N3). */
import { expect, it } from '@jest/globals'
import { Injectable } from '@nestjs/common'
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter'
import { MemoryStore, type BotEvents, type MessageContext } from '@botmesh/core'
import { MemoryCoordinationHub, MemoryCoordinator } from '@botmesh/core/testing'
import { BotmeshModule, OnMessage } from '../src/index.js'
import { runApp, type Running, until } from './test-app.js'
import { TestProvider } from './test-provider.js'

const BROKEN = new Error('the handler broke')

@Injectable()
class Breaks {
  @OnMessage()
  async fail(ctx: MessageContext) {
    await ctx.reply('first')
    throw BROKEN
  }
}

@Injectable()
class Listener {
  leaders: BotEvents['coordination:leader'][] = []
  handled: BotEvents['message:handled'][] = []
  @OnEvent('coordination:leader') leader(event: BotEvents['coordination:leader']) {
    this.leaders.push(event)
  }
  @OnEvent('message:handled') done(event: BotEvents['message:handled']) {
    this.handled.push(event)
  }
}

@Injectable()
class ErrorListener {
  errors: BotEvents['error'][] = []
  @OnEvent('error') failed(event: BotEvents['error']) {
    this.errors.push(event)
  }
}

function run(provider: TestProvider, ...providers: (new () => object)[]): Promise<Running> {
  return runApp({
    imports: [
      EventEmitterModule.forRoot(),
      BotmeshModule.forRoot({
        provider,
        store: new MemoryStore(),
        coordination: { coordinator: new MemoryCoordinator({ hub: new MemoryCoordinationHub() }) },
      }),
    ],
    providers: [Breaks, ...providers],
  })
}

it('N3: reach listeners with the name of the bot, those of the start included', async () => {
  const provider = new TestProvider({ exclusive: true })
  const { app } = await run(provider, Listener, ErrorListener)
  const listener = app.get(Listener)
  await until(() => listener.leaders.length > 0)
  expect(listener.leaders[0]).toMatchObject({ bot: 'default', name: 'provider:test:a' })
  await until(() => provider.state.status === 'open')
  await provider.deliver('ana', 'hello')
  await until(() => app.get(ErrorListener).errors.length > 0)
  expect(app.get(ErrorListener).errors[0]).toEqual({ bot: 'default', error: BROKEN })
})

it('N3: an error that nobody listens to is logged and breaks nothing', async () => {
  const provider = new TestProvider()
  const { logger } = await run(provider, Listener)
  await provider.deliver('ana', 'hello')
  await until(() => logger.texts('error').length > 0)
  expect(logger.texts('error').join()).toContain('the handler broke')
  await provider.deliver('ana', 'hello again')
  expect(await provider.replies('ana', 2)).toEqual(['first', 'first'])
})
