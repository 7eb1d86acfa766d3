/**
 * Ordering: five questions and a booking, each a step. It is persistent, so any replica can go on with it at the
 * question where the last one stopped. It never asks in the middle of work: one question a step, work in its own.
 */
import { Injectable } from '@nestjs/common'
import type { Message } from '@botmesh/core'
import { StepContext } from '@botmesh/core'
import { Flow, Persistent, Step } from '@botmesh/nestjs'
import { Catalogue } from '../catalogue.js'
import { Orders } from '../orders.js'
import { languageOf, plain, textsFor, type Language } from '../texts.js'

interface OrderState {
  language: Language
  /** Fixed once, so that booking twice is booking once. */
  id: string
  product: string
  size: string
  quantity: number
  address: string
}

const QUESTION = { timeout: '30m' } as const

@Flow('order', { on: ['pedido', 'comprar', 'order', 'buy'], bot: '*' })
@Persistent()
@Injectable()
export class OrderFlow {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly orders: Orders,
  ) {}

  @Step()
  async product(c: StepContext<OrderState>) {
    c.state.language ??= languageOf(c.message.body, c.lang)
    c.state.id ??= c.message.id.slice(-6).toUpperCase()
    const texts = textsFor(c.state.language)
    const names = this.catalogue.products.map((one) => one.name).join(', ')
    const answer = await c.ask(texts.product(this.catalogue.list()), {
      ...QUESTION,
      validate: async (message: Message) => {
        const product = this.catalogue.find(message.body)
        if (product === undefined) return texts.productUnknown(names)
        return (await this.orders.left(product.id)) > 0 || texts.soldOut
      },
    })
    c.state.product = this.catalogue.find(answer)?.id ?? ''
  }

  @Step()
  async size(c: StepContext<OrderState>) {
    const { name, sizes } = this.catalogue.get(c.state.product)
    const texts = textsFor(c.state.language)
    const listed = sizes.join(', ')
    const answer = await c.ask(texts.size(name, listed), {
      ...QUESTION,
      validate: (message: Message) =>
        sizes.includes(message.body.trim().toUpperCase()) || texts.sizeUnknown(listed),
    })
    c.state.size = answer.trim().toUpperCase()
  }

  @Step()
  async quantity(c: StepContext<OrderState>) {
    const left = await this.orders.left(c.state.product)
    const texts = textsFor(c.state.language)
    const most = Math.min(left, 20)
    // Not how many are left: a step that is repeated elsewhere would say another number, and so say it twice.
    const answer = await c.ask(texts.quantity, {
      ...QUESTION,
      validate: (message: Message) => {
        const quantity = Number(message.body.trim())
        return (Number.isInteger(quantity) && quantity >= 1 && quantity <= most) || texts.quantityBad(most)
      },
    })
    c.state.quantity = Number(answer.trim())
  }

  @Step()
  async address(c: StepContext<OrderState>) {
    const texts = textsFor(c.state.language)
    c.state.address = await c.ask(texts.address, {
      ...QUESTION,
      validate: (message: Message) => /\S+.*\d/.test(message.body) || texts.addressShort,
    })
  }

  @Step()
  async confirm(c: StepContext<OrderState>) {
    const { product, size, quantity, address, language } = c.state
    const texts = textsFor(language)
    const line = `${quantity} × ${this.catalogue.get(product).name} ${size}`
    const answer = await c.ask(texts.confirm(line, address), {
      ...QUESTION,
      validate: (message: Message) =>
        ['si', 'yes', 'cambiar', 'change', 'no'].includes(plain(message.body)) || texts.confirmUnknown,
    })
    if (['cambiar', 'change'].includes(plain(answer))) {
      await c.say(texts.change)
      return c.goto('product')
    }
    if (plain(answer) === 'no') {
      await c.say(texts.dropped)
      return c.end()
    }
  }

  @Step()
  async book(c: StepContext<OrderState>) {
    const { language, ...order } = c.state
    const texts = textsFor(language)
    if (!(await this.orders.place({ ...order, chat: c.key }))) {
      await c.say(texts.noStock)
      return c.goto('product')
    }
    await c.say(texts.placed(order.id))
  }
}
