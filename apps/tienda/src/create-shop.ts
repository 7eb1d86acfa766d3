/** Builds and starts one replica of the shop; several may live in one process on one in-process mesh. */
import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { MemoryStore, systemRandom, type Coordinator, type Store } from '@botmesh/core'
import type { BaileysProvider } from '@botmesh/baileys'
import { createLogger, NestLines } from './logging/pino-logger.js'
import { checkPairing, type InProcessMesh, type ShopOptions } from './settings.js'
import { ShopModule } from './shop.module.js'

/** What replicas of one process share where there is no Redis: made once, passed to each. */
export function createMesh(): InProcessMesh {
  return { store: new MemoryStore() }
}

export interface Shop {
  readonly app: NestExpressApplication
  readonly port: number
  readonly replicaId: string
  /** `crash()` of a `MemoryCoordinator` simulates a death in a process that goes on. */
  readonly coordinator: Coordinator
  /** Drains and stops, as SIGTERM does. */
  close(): Promise<void>
}

const DEFAULT_LEASE_MS = 5000

/** @throws ConfigError for what cannot work; CoordinationUnavailableError if Redis does not answer. */
export async function createShop(options: ShopOptions = {}): Promise<Shop> {
  checkPairing(options)
  const replicaId = options.replicaId ?? systemRandom.uuid().slice(0, 8)
  const logger = createLogger({
    replica: replicaId,
    ...(options.logLevel === undefined ? {} : { level: options.logLevel }),
    pretty: options.prettyLogs ?? process.stdout.isTTY,
  })
  const { store, coordinator } = await backendOf(options, replicaId)
  const whatsappWeb = await whatsappWebOf(options)
  const app = await NestFactory.create<NestExpressApplication>(
    ShopModule.with({ options, store, coordinator, logger, whatsappWeb }),
    { logger: new NestLines(logger), abortOnError: false },
  )
  // With an exit code of 0, not the signal's: an orderly stop is no failure.
  app.enableShutdownHooks([], { useProcessExit: true })
  try {
    await (options.host === undefined
      ? app.listen(options.port ?? 0)
      : app.listen(options.port ?? 0, options.host))
  } catch (error) {
    // The bot may run already: a replica without a port would hold chats and jobs that nobody can see.
    await app.close()
    throw error
  }
  const { port } = app.getHttpServer().address() as AddressInfo
  return { app, port, replicaId, coordinator, close: () => app.close() }
}

async function backendOf(
  options: ShopOptions,
  replicaId: string,
): Promise<{ store: Store; coordinator: Coordinator }> {
  const leaseMs = options.leaseMs ?? DEFAULT_LEASE_MS
  if (options.redisUrl !== undefined) {
    // Loaded where it is used: without Redis the shop needs no client for it.
    const { RedisStore } = await import('@botmesh/redis-store')
    const store = new RedisStore({ url: options.redisUrl, prefix: options.prefix ?? 'tienda' })
    return { store, coordinator: store.coordinator({ leaseMs, replicaId }) }
  }
  const { store } = options.mesh ?? createMesh()
  return { store, coordinator: store.coordinator({ replicaId, leaseMs }) }
}

async function whatsappWebOf({ whatsappWeb }: ShopOptions): Promise<BaileysProvider | undefined> {
  if (whatsappWeb === undefined) return undefined
  const { BaileysProvider } = await import('@botmesh/baileys')
  return new BaileysProvider(whatsappWeb)
}
