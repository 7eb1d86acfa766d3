/** Starts the bots of an application together, and drains them in an order that loses nothing (N5). */
import { Inject, Injectable } from '@nestjs/common'
import type { HttpAdapterHost } from '@nestjs/core'
import { parseDuration, type Store, type UpgradeServer } from '@botmesh/core'
import { BotRegistry } from './bot-registry.js'
import type { LeaderJobs } from './schedule/leader-jobs.js'

const DEFAULT_DRAIN_MS = 10_000

@Injectable()
export class BotLifecycle {
  private detachers: (() => void)[] = []

  constructor(@Inject(BotRegistry) private readonly registry: BotRegistry) {}

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

  /** Resolves on standbys too. If one bot cannot start the others are stopped again. @throws what it threw. */
  async start(): Promise<void> {
    const results = await Promise.allSettled(this.registry.all.map((one) => one.bot.start()))
    const failure = results.find((one) => one.status === 'rejected')
    if (failure === undefined) return
    await this.stopBots()
    await this.close()
    throw failure.reason
  }

  /** Jobs first, while their elections still live; then all bots at once. Each phase is bounded by `drainMs`. */
  async drain(jobs: LeaderJobs): Promise<void> {
    const limits = this.registry.all.map((one) =>
      parseDuration('drainMs', one.options.config.drainMs ?? DEFAULT_DRAIN_MS),
    )
    await jobs.stop(Math.max(0, ...limits))
    await this.stopBots()
    for (const detach of this.detachers.splice(0)) detach()
  }

  /** Closes each store once. */
  async close(): Promise<void> {
    const owners = new Map<Store, (typeof this.registry.all)[number]>()
    for (const one of this.registry.all) owners.set(one.store, one)
    await Promise.all(
      [...owners].map(async ([store, { logger, name }]) => {
        try {
          await store.close?.()
        } catch (error) {
          logger.error({ bot: name, error }, 'the store did not close in order')
        }
      }),
    )
  }

  private async stopBots(): Promise<void> {
    await Promise.all(
      this.registry.all.map(async ({ bot, name, logger, coordinator, coordinated }) => {
        try {
          await bot.stop()
          if (!coordinated) await coordinator.stop()
        } catch (error) {
          logger.error({ bot: name, error }, 'the bot did not stop in order')
        }
      }),
    )
  }
}
