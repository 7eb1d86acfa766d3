/** The bots' health for the application's own Terminus controller, and what the ready-made routes show (N4). */
import { Inject, Injectable } from '@nestjs/common'
import { BotRegistry } from '../bot-registry.js'
import { bodyOf, reportOf, type BotReport, type HealthBody, type Probe } from './health-report.js'

/** What Terminus expects of an indicator, of version 11 on: a plain result, `down` without throwing. */
export type IndicatorResult = Record<string, { status: 'up' | 'down'; bots: Record<string, BotReport> }>

/**
 * ```ts
 * @Get('health') @HealthCheck()
 * check() { return this.terminus.check([() => this.botmesh.isHealthy('bots')]) }
 * ```
 * No I/O: it reads what the bots know already.
 */
@Injectable()
export class BotmeshHealthIndicator {
  private drains = false

  constructor(@Inject(BotRegistry) private readonly registry: BotRegistry) {}

  /** Role, transport and backend of every bot; down if one of them is not in order. */
  isHealthy(key = 'botmesh'): IndicatorResult {
    return this.result(key, 'report')
  }
  /** Down until every bot's transport is connected, standbys included unless `health.standby` is `'ready'`. */
  isReady(key = 'botmesh'): IndicatorResult {
    return this.result(key, 'ready')
  }
  /** Never down: a standby and a lost backend are no reason to restart the process. */
  isAlive(key = 'botmesh'): IndicatorResult {
    return this.result(key, 'live')
  }

  /** @internal Status and body of a ready-made route, for the bots that have `path`. */
  answer(path: string, probe: Probe): { status: 200 | 503; body: HealthBody } {
    const body = bodyOf(this.reports(probe, path), this.drains)
    return { status: probe === 'live' || body.status === 'ok' ? 200 : 503, body }
  }

  /** @internal From the first shutdown hook on. */
  drain(): void {
    this.drains = true
  }

  private result(key: string, probe: Probe): IndicatorResult {
    const bots = this.reports(probe)
    const down = probe !== 'live' && (this.drains || Object.values(bots).some((one) => one.status === 'down'))
    return { [key]: { status: down ? 'down' : 'up', bots } }
  }

  private reports(probe: Probe, path?: string): Record<string, BotReport> {
    const chosen = this.registry.all.filter((one) => path === undefined || one.options.health?.path === path)
    return Object.fromEntries(
      chosen.map((one) => [
        one.name,
        reportOf({ health: one.bot.health(), standby: one.options.health?.standby ?? 'not-ready' }, probe),
      ]),
    )
  }
}
