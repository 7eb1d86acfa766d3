/**
 * A replica that shares this process and its hub with the others: what there is without Redis. It can be crashed and
 * drained; one replica alone cannot be frozen, because all share one event loop.
 */
import type { InProcessMesh, Shop } from '../../apps/tienda/src/main.js'
import type { DemoReplica, ReplicaState } from './replica.js'

type TiendaModule = typeof import('../../apps/tienda/src/main.js')

/** The built shop, so that sources and build are never mixed in one process. */
export async function loadShop(): Promise<TiendaModule> {
  const built = new URL('../../apps/tienda/dist/main.js', import.meta.url)
  return (await import(built.href)) as TiendaModule
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
    private readonly quiet: boolean,
  ) {}

  async start(): Promise<void> {
    this.state = 'starting'
    this.shop = await this.tienda.createShop({
      ...this.tienda.settingsFrom({ ...this.env, PORT: '0', HOST: '127.0.0.1', REPLICA_ID: this.name }),
      mesh: this.mesh,
      ...(this.quiet ? { logLevel: 'fatal' } : {}),
    })
    this.port = this.shop.port
    this.state = 'up'
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
