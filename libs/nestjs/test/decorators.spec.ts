/** What the decorators leave on classes, and what they refuse. */
import 'reflect-metadata'
import { describe, expect, it } from '@jest/globals'
import { Injectable, Scope } from '@nestjs/common'
import { SCOPE_OPTIONS_METADATA } from '@nestjs/common/constants.js'
import { Cron, Interval } from '@nestjs/schedule'
import { Command, Conversation, Flow, Hears, LeaderOnly, OnMessage, Persistent, Step } from '../src/index.js'
import { MetadataAccessor } from '../src/decorators/metadata.js'

describe('flows', () => {
  it('N2: steps keep the order declared; those of a base come first, an override keeps its place', () => {
    class Base {
      @Step() first() {}
      @Step('second') middle() {}
    }
    @Flow('derived')
    class Derived extends Base {
      @Step() third() {}
      @Step() override first() {}
    }
    expect(MetadataAccessor.steps(Derived).map((one) => one.name)).toEqual(['first', 'second', 'third'])
    expect(MetadataAccessor.steps(Base).map((one) => one.name)).toEqual(['first', 'second'])
  })

  it('N2: a subclass without @Flow is the flow of its base; @Persistent is inherited', () => {
    @Flow('order', { on: 'pedido' })
    @Persistent()
    class Order {
      @Step() one() {}
    }
    class Vip extends Order {}
    expect(MetadataAccessor.flow(Vip)).toEqual({ name: 'order', on: 'pedido' })
    expect(MetadataAccessor.persistent(Vip)).toBe(true)
  })

  it('N2: @Flow implies @Injectable and leaves a scope that the class gives itself', () => {
    @Flow('plain')
    class Plain {}
    @Flow('above')
    @Injectable({ scope: Scope.REQUEST })
    class Above {}
    @Injectable({ scope: Scope.REQUEST })
    @Flow('below')
    class Below {}
    expect(Reflect.getMetadata('__injectable__', Plain)).toBe(true)
    for (const type of [Above, Below]) {
      expect(Reflect.getMetadata(SCOPE_OPTIONS_METADATA, type)).toMatchObject({ scope: Scope.REQUEST })
    }
  })
})

describe('handlers', () => {
  it('N2: several decorators may stand on one method; a subclass replaces what it declares again', () => {
    class Base {
      @Command('stop')
      @Command('cancel', { interrupt: true })
      leave() {}
      @OnMessage() rest() {}
    }
    class Derived extends Base {
      @Hears('hola') override rest() {}
      @Conversation() survey() {}
    }
    expect(MetadataAccessor.handlers(Derived)).toEqual([
      { method: 'leave', kind: 'command', name: 'cancel', options: { interrupt: true } },
      { method: 'leave', kind: 'command', name: 'stop', options: {} },
      { method: 'rest', kind: 'hears', trigger: 'hola' },
      { method: 'survey', kind: 'conversation', name: 'survey', options: {} },
    ])
  })

  it('N2: a static method is refused with its name', () => {
    expect(() => {
      class Wrong {
        @OnMessage() static all() {}
      }
      return Wrong
    }).toThrow('@OnMessage() on Wrong.all')
  })
})

describe('@LeaderOnly', () => {
  it('N6: what @Cron and @Interval mark reaches the wrapped method in either order', () => {
    class Jobs {
      @LeaderOnly('above')
      @Cron('0 3 * * *')
      above() {}
      @Interval(1000)
      @LeaderOnly('below')
      below() {}
    }
    const marked = (method: 'above' | 'below', mark: string): unknown =>
      Reflect.getMetadata(mark, Reflect.get(Jobs.prototype, method))
    expect(marked('above', 'SCHEDULER_TYPE')).toBeDefined()
    expect(marked('above', 'SCHEDULE_CRON_OPTIONS')).toMatchObject({ cronTime: '0 3 * * *' })
    expect(marked('below', 'SCHEDULER_TYPE')).toBeDefined()
    expect(MetadataAccessor.leaderJobs(Jobs).map((one) => one.name)).toEqual(['above', 'below'])
  })

  it('N6: outside of an application the call rejects and says what is missing', async () => {
    class Jobs {
      @LeaderOnly('report') report() {}
    }
    await expect(new Jobs().report()).rejects.toThrow(/job "report" of Jobs .* import BotmeshModule/)
  })
})

describe('bad input', () => {
  it('an unknown option is refused where it is written, with the near name', () => {
    const mistaken = { bots: 'sales' } as object
    expect(() => Flow('order', { om: 'pedido' } as object)).toThrow(
      /@Flow\("order"\) has no option "om"; did you mean "on"/,
    )
    expect(() => OnMessage(mistaken)).toThrow(/@OnMessage\(\) has no option "bots"; did you mean "bot"/)
    expect(() => Hears('hola', mistaken)).toThrow(/@Hears\(\) has no option "bots"/)
    expect(() => LeaderOnly('report', mistaken)).toThrow(/@LeaderOnly\(\) has no option "bots"/)
  })
})
