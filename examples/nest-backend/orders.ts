/** The backend as it was before the bot: a service and a controller. */
import { Body, Controller, Get, Injectable, Module, Post } from '@nestjs/common'

export interface Order {
  size: string
  address: string
}

@Injectable()
export class Orders {
  readonly sizes = ['S', 'M', 'L']
  readonly all: Order[] = []

  add(order: Order): number {
    return this.all.push(order)
  }
}

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Get() list(): Order[] {
    return this.orders.all
  }
  @Post() add(@Body() order: Order): { number: number } {
    return { number: this.orders.add(order) }
  }
}

@Module({ controllers: [OrdersController], providers: [Orders], exports: [Orders] })
export class OrdersModule {}
