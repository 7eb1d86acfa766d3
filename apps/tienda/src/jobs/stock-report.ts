/**
 * A job that one replica does for all: counts what was sold, as long as it lives; then another one does. It speaks
 * when it begins and when something was sold.
 */
import { Inject, Injectable } from '@nestjs/common'
import { EventEmitter2 } from '@nestjs/event-emitter'
import { Interval } from '@nestjs/schedule'
import type { Logger } from 'pino'
import { LeaderOnly } from '@botmesh/nestjs'
import { PINO } from '../logging/pino-logger.js'
import { Orders } from '../orders.js'

const EVERY_MS = 5000

@Injectable()
export class StockReport {
  private told = ''

  constructor(
    private readonly orders: Orders,
    private readonly events: EventEmitter2,
    @Inject(PINO) private readonly log: Logger,
  ) {}

  @LeaderOnly('stock-report')
  @Interval('stock-report', EVERY_MS)
  async report() {
    const orders = await this.orders.all()
    const pieces = orders.reduce((sum, one) => sum + one.quantity, 0)
    const sold = { orders: orders.length, pieces }
    const news = JSON.stringify(sold)
    if (news === this.told) return
    this.told = news
    this.log.info({ event: 'stock-report', ...sold }, 'sold so far')
    this.events.emit('stock-report', sold)
  }
}
