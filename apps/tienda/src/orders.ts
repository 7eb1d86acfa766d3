/**
 * The orders and what is left, in the store that the replicas share. One row, written by compare-and-set: two
 * replicas that sell the last piece at once cannot both succeed. Placing an order again (a step that is repeated at
 * another replica, H11) changes nothing, because its id was fixed in the flow's state before.
 */
import { Injectable } from '@nestjs/common'
import { Bot, type Store } from '@botmesh/core'
import { Catalogue } from './catalogue.js'

export interface Order {
  id: string
  product: string
  size: string
  quantity: number
  address: string
  chat: string
}

interface Ledger {
  sold: Record<string, number>
  orders: Record<string, Order>
}

const ROW = 'tienda:ledger'
const KEPT = 500
const ATTEMPTS = 50

@Injectable()
export class Orders {
  private readonly store: Store

  constructor(
    private readonly catalogue: Catalogue,
    bot: Bot,
  ) {
    this.store = bot.store
  }

  async left(product: string): Promise<number> {
    const { ledger } = await this.read()
    return this.leftIn(ledger, product)
  }

  async all(): Promise<Order[]> {
    return Object.values((await this.read()).ledger.orders)
  }

  /** @returns false if there is not that much left. Idempotent by `order.id`. */
  async place(order: Order): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const { ledger, revision } = await this.read()
      if (ledger.orders[order.id] !== undefined) return true
      if (this.leftIn(ledger, order.product) < order.quantity) return false
      const next: Ledger = {
        sold: { ...ledger.sold, [order.product]: (ledger.sold[order.product] ?? 0) + order.quantity },
        orders: Object.fromEntries([...Object.entries(ledger.orders), [order.id, order]].slice(-KEPT)),
      }
      if ((await this.store.setUserIf(ROW, { ...next }, revision)) !== null) return true
    }
    throw new Error(`Order ${order.id} could not be written: too many others wrote at the same time.`)
  }

  private leftIn(ledger: Ledger, product: string): number {
    return this.catalogue.get(product).initialStock - (ledger.sold[product] ?? 0)
  }

  private async read(): Promise<{ ledger: Ledger; revision: string | null }> {
    const row = await this.store.getUser(ROW)
    const { sold = {}, orders = {} } = (row?.data ?? {}) as Partial<Ledger>
    return { ledger: { sold, orders }, revision: row?.revision ?? null }
  }
}
