/**
 * What the bots of one application share: discovery, routes, health, events, leader-only jobs, start and drain.
 *
 * Order of hooks. This module is put last in Nest's order of initialisation and so first in its order of shutdown:
 * - init (after every other module's `onModuleInit`, before anything is mounted behind it): flows and handlers are found.
 * - bootstrap (after every other module's, so that listeners and services are there): routes open, bots start.
 * - destroy (before every other module's, so that nothing a handler needs is closed yet): bots drain (N5).
 * - shutdown (after the HTTP server has closed): the stores close, last.
 */
import {
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { DiscoveryModule, DiscoveryService, HttpAdapterHost, ModulesContainer } from '@nestjs/core'
import { systemClock, type Timer } from '@botmesh/core'
import { BotRegistry } from './bot-registry.js'
import { MetadataAccessor } from './decorators/metadata.js'
import { FlowLoader } from './discovery/flow-loader.js'
import { HandlerLoader } from './discovery/handler-loader.js'
import { scanProviders } from './discovery/provider-scan.js'
import { EventForwarder } from './events/event-forwarder.js'
import { BotmeshHealthIndicator } from './health/botmesh-health.indicator.js'
import { openHealthRoutes } from './health/health-routes.js'
import { FrontDoor } from './http/front-door.js'
import { BotLifecycle } from './bot-lifecycle.js'
import { LeaderJobs } from './schedule/leader-jobs.js'
import { ShutdownEndModule } from './shutdown-end.js'
import { ShutdownHooks } from './shutdown-hooks.js'

const HOOKS_GRACE_MS = 1000

@Module({
  imports: [DiscoveryModule, ShutdownEndModule],
  providers: [
    BotRegistry,
    BotLifecycle,
    BotmeshHealthIndicator,
    EventForwarder,
    FrontDoor,
    LeaderJobs,
    ShutdownHooks,
  ],
  exports: [BotRegistry, BotmeshHealthIndicator, LeaderJobs],
})
export class BotmeshCoreModule
  implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  private later: Timer | undefined

  constructor(
    @Inject(BotRegistry) private readonly registry: BotRegistry,
    @Inject(BotLifecycle) private readonly lifecycle: BotLifecycle,
    @Inject(BotmeshHealthIndicator) private readonly health: BotmeshHealthIndicator,
    @Inject(EventForwarder) private readonly events: EventForwarder,
    @Inject(FrontDoor) private readonly door: FrontDoor,
    @Inject(LeaderJobs) private readonly jobs: LeaderJobs,
    @Inject(ShutdownHooks) private readonly shutdownHooks: ShutdownHooks,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(HttpAdapterHost) private readonly http: HttpAdapterHost,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    for (const one of modules.values()) if (one.metatype === BotmeshCoreModule) one.distance = -1
  }

  onModuleInit(): void {
    const flows = new FlowLoader(this.registry)
    const handlers = new HandlerLoader(this.registry)
    for (const found of scanProviders(this.discovery)) {
      flows.load(found)
      handlers.load(found)
      const jobs = MetadataAccessor.leaderJobs(found.type)
      if (jobs.length > 0 && found.instance !== null) this.jobs.add(found.instance, jobs)
    }
  }

  async onApplicationBootstrap(): Promise<void> {
    // Closed before its bots' turn: what would be opened now, nobody would close.
    if (this.lifecycle.closing) return this.lifecycle.start()
    for (const registered of this.registry.all) this.events.forward(registered)
    this.door.open()
    openHealthRoutes(this.registry, this.door, this.health, this.http)
    this.checkShutdownHooks()
    this.lifecycle.attach(this.http)
    await this.lifecycle.start()
    this.jobs.start()
  }

  async onModuleDestroy(): Promise<void> {
    this.later?.cancel()
    this.door.drain()
    this.health.drain()
    await this.lifecycle.drain(this.jobs)
  }

  async onApplicationShutdown(): Promise<void> {
    await this.lifecycle.close()
  }

  /** An application without HTTP is initialised before anybody can switch its hooks on: it is asked a little later. */
  private checkShutdownHooks(): void {
    const check = () => this.warnWithoutShutdownHooks()
    if (this.door.mounted) check()
    else this.later = systemClock.setTimeout(check, HOOKS_GRACE_MS, { background: true })
  }

  private warnWithoutShutdownHooks(): void {
    const [first] = this.registry.all.filter((one) => one.options.shutdownHooksWarning)
    if (first === undefined || this.shutdownHooks.enabled) return
    first.logger.warn(
      {},
      'shutdown hooks are off: on SIGTERM this process will die with its turns and leaderships, and others wait for its lease. Call app.enableShutdownHooks() before app.listen() (or set shutdownHooksWarning: false)',
    )
  }
}
