/** The backend with its bot. Transport and store come from outside, so that a test may bring others. */
import { Module, type DynamicModule } from '@nestjs/common'
import { BotmeshModule, type BotmeshModuleOptions } from '@botmesh/nestjs'
import { FrontDesk, OrderFlow } from './order.flow.js'
import { OrdersModule } from './orders.js'

@Module({ imports: [OrdersModule], providers: [OrderFlow, FrontDesk] })
export class AppModule {
  static with(bot: BotmeshModuleOptions): DynamicModule {
    return { module: AppModule, imports: [BotmeshModule.forRoot(bot)] }
  }
}
