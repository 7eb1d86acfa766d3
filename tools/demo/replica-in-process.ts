/**
 * A replica that shares this process and its hub with the others: what there is without Redis. It can be crashed and
 * drained; one replica alone cannot be frozen, because all share one event loop.
 */
import type { InProcessMesh, Shop } from '../../apps/tienda/src/main.js'
import { EventEmitter2 } from '@nestjs/event-emitter'
import type { BotEvents } from '@botmesh/core'
import type { DemoReplica, OnEvent, ReplicaState } from './replica.js'
import { shopScript } from './shop-script.js'

type TiendaModule = typeof import('../../apps/tienda/src/main.js')

export async function loadShop(): Promise<TiendaModule> {
  return (await import(shopScript.href)) as TiendaModule
}

export class ReplicaInProcess implements DemoReplica {
  state: ReplicaState = 'down'
  port = 0
  private shop: Shop | undefined

  constructor(
    readonly name: string,
    private readonly tienda: TiendaModule,
    private readonly mesh: InProcessMesh,
    private readonly env: Record<string, string>,
    private readonly onEvent: OnEvent,
  ) {}

  async start(): Promise<void> {
    this.state = 'starting'
    this.shop = await this.tienda.createShop({
      ...this.tienda.settingsFrom({ ...this.env, PORT: '0', HOST: '127.0.0.1', REPLICA_ID: this.name }),
      mesh: this.mesh,
      logLevel: 'silent',
    })
    this.listen(this.shop.app.get(EventEmitter2))
    this.port = this.shop.port
    this.state = 'up'
  }

  /** What a process of its own tells in its log. */
  private listen(events: EventEmitter2): void {
    const replica = this.name
    events.on('message:handled', ({ key, message, ...rest }: BotEvents['message:handled']) =>
      this.onEvent({ ...rest, event: 'handled', replica, chat: key, messageId: message.id }),
    )
    events.on('coordination:handover', ({ key, name, ...rest }: BotEvents['coordination:handover']) =>
      this.onEvent({ ...rest, event: 'handover', replica, chat: key, conversation: name }),
    )
    events.on('coordination:lease-lost', (lost: BotEvents['coordination:lease-lost']) =>
      this.onEvent({ ...lost, event: 'lease-lost', replica }),
    )
    events.on('stock-report', (sold: { orders: number; pieces: number }) =>
      this.onEvent({ ...sold, event: 'stock-report', replica }),
    )
    events.on('error', ({ error }: BotEvents['error']) =>
      this.onEvent({ event: 'error', replica, err: error }),
    )
  }

  async kill(): Promise<void> {
    const { shop } = this
    this.state = 'down'
    if (shop === undefined) return
    if ('crash' in shop.coordinator && typeof shop.coordinator.crash === 'function') shop.coordinator.crash()
    const server = shop.app.getHttpServer() as { closeAllConnections?: () => void }
    const closed = shop.close()
    server.closeAllConnections?.()
    await closed
  }

  freeze(): boolean {
    return false
  }

  thaw(): void {}

  async drain(): Promise<number> {
    const start = performance.now()
    this.state = 'draining'
    await this.shop?.close()
    this.state = 'down'
    return Math.round(performance.now() - start)
  }
}
