/** The conversation, as a provider of the application: services are injected, state is `c.state`. */
import { MessageContext, StepContext } from '@botmesh/core'
import { Command, Flow, OnMessage, Persistent, Step } from '@botmesh/nestjs'
import { Injectable } from '@nestjs/common'
import { Orders, type Order } from './orders.js'

@Flow('order', { on: 'order' })
@Persistent()
export class OrderFlow {
  constructor(private readonly orders: Orders) {}

  @Step() async size(c: StepContext<Order>) {
    c.state.size = await c.ask('Which size?', {
      validate: (m) => this.orders.sizes.includes(m.body) || 'S, M or L, please.',
    })
  }

  @Step() async address(c: StepContext<Order>) {
    c.state.address = await c.ask('Where shall it go?')
    if ((await c.ask(`${c.state.size}, to ${c.state.address}. All right?`)) !== 'yes') return c.goto('size')
    await c.say(`That is order ${this.orders.add({ ...c.state })}.`)
  }
}

@Injectable()
export class FrontDesk {
  @Command('cancel', { interrupt: true }) async cancel(ctx: MessageContext) {
    await ctx.reply((await ctx.leave()) ? 'Forgotten.' : 'Nothing to cancel.')
  }
  @OnMessage() async rest(ctx: MessageContext) {
    await ctx.reply('Write "order".')
  }
}
