/** Starts the bots of an application together, and drains them in an order that loses nothing (N5). */
import { Inject, Injectable } from '@nestjs/common'
import type { HttpAdapterHost } from '@nestjs/core'
import {
  beginUse,
  CoordinationUnavailableError,
  endUse,
  isIdle,
  parseDuration,
  type Coordinator,
  type Store,
  type UpgradeServer,
} from '@botmesh/core'
import { BotRegistry, type RegisteredBot } from './bot-registry.js'
import type { LeaderJobs } from './schedule/leader-jobs.js'
import { ShutdownEnd } from './shutdown-end.js'

const DEFAULT_DRAIN_MS = 10_000
const CLOSED_AT_START = 'The application was closed before its bots had started.'

/** A bot that could not start. */
interface Failure {
  readonly owner: RegisteredBot
  readonly reason: unknown
}

@Injectable()
export class BotLifecycle {
  private detachers: (() => void)[] = []
  /** What this application holds on to, with a bot to log for it. */
  private readonly stores = new Map<Store, RegisteredBot>()
  private readonly coordinators = new Map<Coordinator, RegisteredBot>()
  private draining = false

  /** The application is being closed, or was: nothing is to be opened any more. */
  get closing(): boolean {
    return this.draining
  }

  constructor(
    @Inject(BotRegistry) private readonly registry: BotRegistry,
    @Inject(ShutdownEnd) private readonly shutdown: ShutdownEnd,
  ) {}

  /** Gives WebSocket transports the application's HTTP server. */
  attach({ httpAdapter }: HttpAdapterHost): void {
    const server = httpAdapter?.getHttpServer() as UpgradeServer | undefined
    for (const { bot, name, logger, options } of this.registry.all) {
      if (bot.provider.attach === undefined || options.webhooks === null) continue
      if (server === undefined)
        logger.warn({ bot: name }, 'this application has no HTTP server to attach the transport to')
      else this.detachers.push(bot.provider.attach(server))
    }
  }

  /**
   * Resolves on standbys too. If one bot cannot start the others are stopped again. @throws what it threw; if the
   * application is closed meanwhile, `stopped`, once that is over: an entry point that does not catch it ends the process.
   */
  async start(): Promise<void> {
    const failures = this.draining ? [] : await this.startBots()
    if (this.draining) {
      const cause = this.tellFailures(failures)
      await this.shutdown.over
      throw new CoordinationUnavailableError('stopped', { text: CLOSED_AT_START, cause })
    }
    const [failure] = failures
    if (failure === undefined) return
    await this.stopBots()
    await this.releaseCoordinators()
    await this.close()
    throw failure.reason
  }

  /** Jobs and bots at once, each bounded by `drainMs`; their coordinators last, while nothing is held any more. */
  async drain(jobs: LeaderJobs): Promise<void> {
    this.draining = true
    const limits = this.registry.all.map((one) =>
      parseDuration('drainMs', one.options.config.drainMs ?? DEFAULT_DRAIN_MS),
    )
    await Promise.all([jobs.stop(Math.max(0, ...limits)), this.stopBots()])
    await this.releaseCoordinators()
    for (const detach of this.detachers.splice(0)) detach()
    this.shutdown.limitWait()
  }

  /** Closes the stores: after the application's own shutdown, which may still want to note something. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.stores].map(([store, owner]) => this.end(store, async () => await store.close?.(), owner)),
    )
    this.stores.clear()
  }

  /** @returns those that could not start, in the order of their modules. */
  private async startBots(): Promise<Failure[]> {
    this.hold()
    const { all } = this.registry
    const results = await Promise.allSettled(all.map((one) => one.bot.start()))
    return results.flatMap((one, n) =>
      one.status === 'rejected' ? [{ owner: all[n]!, reason: one.reason as unknown }] : [],
    )
  }

  /**
   * Bots that were stopped at their start say so, which is no failure. One that had failed before is told here: nobody
   * else will, as the application does not start for another reason. @returns the first such reason.
   */
  private tellFailures(failures: readonly Failure[]): unknown {
    const own = failures.filter(({ reason }) => !isStopped(reason))
    for (const { owner, reason } of own) {
      owner.logger.error({ bot: owner.name, err: reason }, 'the bot could not start')
    }
    return own[0]?.reason
  }

  /** Counts as a user of what the bots share, so that the last bot to stop does not end it too early. */
  private hold(): void {
    for (const one of this.registry.all) {
      if (!this.stores.has(one.store)) beginUse(one.store, one.store.isOpen !== true)
      this.stores.set(one.store, one)
      const { coordinator } = one
      if (!this.coordinators.has(coordinator)) beginUse(coordinator, isIdle(coordinator))
      this.coordinators.set(coordinator, one)
    }
  }

  private async releaseCoordinators(): Promise<void> {
    await Promise.all(
      [...this.coordinators].map(([one, owner]) => this.end(one, async () => await one.stop(), owner)),
    )
    this.coordinators.clear()
  }

  private async end(resource: object, stop: () => Promise<void>, owner: RegisteredBot): Promise<void> {
    await this.noted(owner, () => endUse(resource, stop))
  }

  private async stopBots(): Promise<void> {
    await Promise.all(this.registry.all.map((one) => this.noted(one, () => one.bot.stop())))
  }

  /** One that does not stop in order must not keep the others from it. */
  private async noted({ name, logger }: RegisteredBot, stop: () => Promise<void>): Promise<void> {
    try {
      await stop()
    } catch (error) {
      logger.error({ bot: name, err: error }, 'something did not stop in order')
    }
  }
}

function isStopped(error: unknown): boolean {
  return error instanceof CoordinationUnavailableError && error.details.why === 'stopped'
}
