/** A job that one replica does for all: counts what was sold, as long as it lives; then another one does. */
import { Inject, Injectable } from '@nestjs/common'
import { Interval } from '@nestjs/schedule'
import type { Logger } from 'pino'
import { LeaderOnly } from '@botmesh/nestjs'
import { PINO } from '../logging/pino-logger.js'
import { Orders } from '../orders.js'

const EVERY_MS = 5000

@Injectable()
export class StockReport {
  constructor(
    private readonly orders: Orders,
    @Inject(PINO) private readonly log: Logger,
  ) {}

  @LeaderOnly('stock-report')
  @Interval('stock-report', EVERY_MS)
  async report() {
    const orders = await this.orders.all()
    const pieces = orders.reduce((sum, one) => sum + one.quantity, 0)
    this.log.info({ event: 'stock-report', orders: orders.length, pieces }, 'sold so far')
  }
}
