/** The shop as a Nest module: one bot per transport, all with the same conversations and one coordinator. */
import { Global, Module, type DynamicModule } from '@nestjs/common'
import { EventEmitterModule } from '@nestjs/event-emitter'
import { ScheduleModule } from '@nestjs/schedule'
import { systemClock, type Coordinator, type Provider, type Store } from '@botmesh/core'
import type { BaileysProvider } from '@botmesh/baileys'
import { MetaProvider } from '@botmesh/meta'
import { BotmeshModule, DEFAULT_BOT, type BotmeshModuleOptions } from '@botmesh/nestjs'
import { TelegramProvider } from '@botmesh/telegram'
import { WebchatProvider } from '@botmesh/webchat'
import type { Logger } from 'pino'
import { Catalogue } from './catalogue.js'
import { FrontDesk } from './conversations/front-desk.js'
import { OrderFlow } from './conversations/order.flow.js'
import { Survey } from './conversations/survey.js'
import { StockReport } from './jobs/stock-report.js'
import { ChatLog } from './logging/chat-log.js'
import { botLines, PINO } from './logging/pino-logger.js'
import { Orders } from './orders.js'
import { PAIRED_BOT, PAIRING_CLOCK, PairingBoard } from './pairing/pairing-board.js'
import { PairingController } from './pairing/pairing.controller.js'
import { PAIRING_PASSWORD } from './pairing/pairing.guard.js'
import type { ShopOptions } from './settings.js'

export interface ShopParts {
  options: ShopOptions
  store: Store
  coordinator: Coordinator
  logger: Logger
  /** Made by the caller, because its library is loaded only where it is used. */
  whatsappWeb?: BaileysProvider | undefined
}

@Global()
@Module({})
export class ShopModule {
  static with(parts: ShopParts): DynamicModule {
    return {
      module: ShopModule,
      imports: [
        EventEmitterModule.forRoot(),
        ScheduleModule.forRoot(),
        ...transportsOf(parts).map(([name, provider, path]) =>
          BotmeshModule.forRoot(botOf(parts, name, provider, path)),
        ),
      ],
      controllers: hasPairingPage(parts) ? [PairingController] : [],
      providers: [
        ...(hasPairingPage(parts)
          ? [
              { provide: PAIRING_PASSWORD, useValue: parts.options.pairingPassword },
              { provide: PAIRING_CLOCK, useValue: systemClock },
              PairingBoard,
            ]
          : []),
        { provide: PINO, useValue: parts.logger },
        Catalogue,
        Orders,
        OrderFlow,
        Survey,
        FrontDesk,
        StockReport,
        ChatLog,
      ],
      exports: [PINO],
    }
  }
}

/** Without a password there is no page: whoever sees it can pair a phone of their own with the shop. */
function hasPairingPage({ options, whatsappWeb }: ShopParts): boolean {
  return whatsappWeb !== undefined && options.pairingPassword !== undefined
}

function transportsOf(parts: ShopParts): [name: string, provider: Provider, webhook?: string][] {
  const { webchatSecret, whatsapp, telegram } = parts.options
  const transports: [string, Provider, string?][] = [
    [
      DEFAULT_BOT,
      new WebchatProvider({
        account: 'tienda',
        path: '/chat',
        title: 'Tienda Aurora',
        ...(webchatSecret === undefined ? {} : { secret: webchatSecret }),
      }),
    ],
  ]
  if (whatsapp !== undefined) {
    transports.push(['whatsapp', new MetaProvider({ ...whatsapp, account: 'tienda' }), '/webhooks/whatsapp'])
  }
  if (telegram !== undefined) {
    const { token, webhookSecret, apiRoot } = telegram
    const provider = new TelegramProvider({
      token,
      account: 'tienda',
      ...(webhookSecret === undefined ? {} : { webhook: { secret: webhookSecret } }),
      ...(apiRoot === undefined ? {} : { apiRoot }),
    })
    const path = webhookSecret === undefined ? undefined : '/webhooks/telegram'
    transports.push(['telegram', provider, path])
  }
  if (parts.whatsappWeb !== undefined) transports.push([PAIRED_BOT, parts.whatsappWeb])
  return transports
}

function botOf(parts: ShopParts, name: string, provider: Provider, path?: string): BotmeshModuleOptions {
  const { options, store, coordinator, logger } = parts
  return {
    name,
    provider,
    store,
    coordination: { coordinator, handover: { fallback: 'notify' } },
    durability: options.durability ?? false,
    locale: 'es',
    ...(options.healthStandby === undefined ? {} : { health: { standby: options.healthStandby } }),
    logger: botLines(logger, name),
    ...(path === undefined ? {} : { webhooks: { path } }),
  }
}
