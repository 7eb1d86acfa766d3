/** Decorated classes as flows, conversations and handlers of their bots (N2), each through a running bot. */
import { describe, expect, it } from '@jest/globals'
import { Injectable, Module, Scope } from '@nestjs/common'
import { ConversationContext, MessageContext, StepContext } from '@botmesh/core'
import {
  BeforeMessage,
  BotmeshModule,
  Command,
  Conversation,
  Flow,
  Hears,
  OnMessage,
  Persistent,
  Step,
} from '../src/index.js'
import { initApp, runApp } from './test-app.js'
import { TestProvider } from './test-provider.js'

interface OrderState {
  size: string
  sure: string
}

@Injectable()
class Stock {
  sizes = ['S', 'M']
}

abstract class Polite {
  @Step()
  async greet(c: StepContext<OrderState>) {
    await c.say('welcome')
  }
}

@Flow('order', { on: 'pedido' })
@Persistent()
class OrderFlow extends Polite {
  constructor(private readonly stock: Stock) {
    super()
  }

  @Step()
  async size(c: StepContext<OrderState>) {
    c.state.size = await c.ask('size?', {
      validate: (message) => this.stock.sizes.includes(message.body) || `one of ${this.stock.sizes.join()}`,
    })
  }

  @Step('confirm')
  async sure(c: StepContext<OrderState>) {
    if ((await c.ask(`${c.state.size}, sure?`)) !== 'yes') return c.goto('size')
  }

  @Step()
  async done(c: StepContext<OrderState>) {
    await c.say('done')
  }
}

@Injectable()
class Handlers {
  constructor(private readonly stock: Stock) {}

  @BeforeMessage()
  lower(ctx: MessageContext) {
    if (ctx.body.startsWith('HEY')) ctx.body = 'hey'
  }

  @Conversation('survey')
  async survey(c: ConversationContext) {
    await c.say(`thanks for ${await c.ask('score?')}`)
  }

  @Hears('hey')
  async hey(ctx: MessageContext) {
    await ctx.enter('survey')
  }

  @Command('cancel', { interrupt: true })
  async cancel(ctx: MessageContext) {
    await ctx.reply((await ctx.leave()) ? 'left' : 'nothing')
  }

  @OnMessage()
  async rest(ctx: MessageContext) {
    await ctx.reply(`${this.stock.sizes.length} sizes`)
  }
}

async function talk(provider: TestProvider, chat: string, ...lines: [say: string, repliesSoFar: number][]) {
  let replies: string[] = []
  for (const [line, count] of lines) {
    await provider.deliver(chat, line)
    replies = await provider.replies(chat, count)
  }
  return replies
}

describe('N2: discovery', () => {
  it('flows with constructor injection, inherited steps, named steps, goto and validation', async () => {
    const provider = new TestProvider()
    await runApp({ imports: [BotmeshModule.forRoot({ provider })], providers: [Stock, OrderFlow] })
    const replies = await talk(
      provider,
      'ana',
      ['pedido', 2],
      ['XXL', 3],
      ['M', 4],
      ['no', 5],
      ['S', 6],
      ['yes', 7],
    )
    expect(replies).toEqual(['welcome', 'size?', 'one of S,M', 'M, sure?', 'size?', 'S, sure?', 'done'])
  })

  it('conversations, hears, before, interrupting commands and the rest, in any module', async () => {
    @Module({ providers: [Stock, Handlers] })
    class Feature {}
    const provider = new TestProvider()
    await runApp({ imports: [BotmeshModule.forRoot({ provider }), Feature] })
    expect(await talk(provider, 'ana', ['HEY there', 1], ['5', 2])).toEqual(['score?', 'thanks for 5'])
    expect(await talk(provider, 'eva', ['hey', 1], ['/cancel', 2], ['/cancel', 3], ['?', 4])).toEqual([
      'score?',
      'left',
      'nothing',
      '2 sizes',
    ])
  })

  it('bot: one bot, several, all of them', async () => {
    @Injectable()
    class Selective {
      @Hears('which', { bot: 'b' })
      async onlyB(ctx: MessageContext) {
        await ctx.reply('b')
      }
      @Hears('which', { bot: ['default', 'c'] })
      async others(ctx: MessageContext) {
        await ctx.reply('default or c')
      }
      @Hears('all', { bot: '*' })
      async all(ctx: MessageContext) {
        await ctx.reply('all')
      }
      @Hears('unsaid')
      async unsaid(ctx: MessageContext) {
        await ctx.reply('default')
      }
    }
    const names = ['default', 'b', 'c']
    const providers = new Map(names.map((name) => [name, new TestProvider({ account: name })]))
    await runApp({
      imports: [...providers].map(([name, provider]) => BotmeshModule.forRoot({ name, provider })),
      providers: [Selective],
    })
    const answers: Record<string, string[]> = {}
    for (const [name, provider] of providers) {
      await provider.deliver('ana', 'which')
      await provider.deliver('ana', 'unsaid')
      await provider.deliver('ana', 'all')
      answers[name] = await provider.replies('ana', name === 'default' ? 3 : 2)
    }
    expect(answers).toEqual({
      default: ['default or c', 'default', 'all'],
      b: ['b', 'all'],
      c: ['default or c', 'all'],
    })
  })

  it('a flow of several bots keeps a state per chat, never in the class', async () => {
    @Flow('count', { on: 'go', bot: '*' })
    class Count {
      @Step() async first(c: StepContext<{ n: string }>) {
        c.state.n = await c.ask('n?')
      }
      @Step() async second(c: StepContext<{ n: string }>) {
        await c.say(`n=${c.state.n}`)
      }
    }
    const [a, b] = [new TestProvider(), new TestProvider({ account: 'b' })]
    await runApp({
      imports: [BotmeshModule.forRoot({ provider: a }), BotmeshModule.forRoot({ name: 'b', provider: b })],
      providers: [Count],
    })
    await talk(a, 'ana', ['go', 1])
    await talk(b, 'ana', ['go', 1])
    expect(await talk(a, 'ana', ['1', 2])).toEqual(['n?', 'n=1'])
    expect(await talk(b, 'ana', ['2', 2])).toEqual(['n?', 'n=2'])
  })
})

describe('bad input is named at start', () => {
  const withClasses = (...providers: (new (...args: never[]) => object)[]) =>
    initApp({ imports: [BotmeshModule.forRoot({ provider: new TestProvider() })], providers })

  it('a flow without steps', async () => {
    @Flow('empty')
    class Empty {}
    await expect(withClasses(Empty)).rejects.toThrow('Flow "empty": class Empty has no @Step() method')
  })

  it('a request-scoped flow, by its own scope or by what it injects', async () => {
    @Flow('scoped')
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @Step() one() {}
    }
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {}
    @Flow('infected')
    class Infected {
      constructor(readonly dependency: PerRequest) {}
      @Step() one() {}
    }
    await expect(withClasses(Scoped)).rejects.toThrow('Flow "scoped": class Scoped is request-scoped')
    await expect(withClasses(PerRequest, Infected)).rejects.toThrow('class Infected is request-scoped')
  })

  it('handlers in a request-scoped class', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Scoped {
      @OnMessage() all() {}
    }
    await expect(withClasses(Scoped)).rejects.toThrow('Class Scoped is request-scoped')
  })

  it('two flows of one name, two steps of one name', async () => {
    @Flow('order')
    class One {
      @Step() a() {}
    }
    @Flow('order')
    class Two {
      @Step() a() {}
    }
    @Flow('double')
    class Double {
      @Step('a') one() {}
      @Step('a') two() {}
    }
    await expect(withClasses(One, Two)).rejects.toThrow(
      /Two flows are called "order" on bot "default": One in \w+ and Two in \w+/,
    )
    await expect(withClasses(Double)).rejects.toThrow('Double.one and Double.two are both step "a"')
  })

  it('steps without a flow', async () => {
    class Lost {
      @Step() one() {}
    }
    await expect(withClasses(Lost)).rejects.toThrow('Class Lost has @Step() or @Persistent() but no @Flow')
  })

  it('a goto to a step that does not exist', async () => {
    @Flow('jump')
    class Jump {
      @Step() one(c: StepContext) {
        return c.goto('nowhere')
      }
    }
    await expect(withClasses(Jump)).rejects.toThrow(/nowhere/)
  })

  it('an unknown bot, and no default one', async () => {
    @Flow('order', { bot: 'sale' })
    class Order {
      @Step() one() {}
    }
    await expect(withClasses(Order)).rejects.toThrow(
      'for a bot called "sale", which does not exist; bots: default',
    )
    @Injectable()
    class Unsaid {
      @OnMessage() all() {}
    }
    await expect(
      initApp({
        imports: ['a', 'b'].map((name) =>
          BotmeshModule.forRoot({ name, provider: new TestProvider({ account: name }) }),
        ),
        providers: [Unsaid],
      }),
    ).rejects.toThrow(
      "Unsaid.all says no `bot`, and there is no default one; bots: a, b. Say bot: '*' for all.",
    )
  })
})
