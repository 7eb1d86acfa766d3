/** Opens `/health`, `/health/ready` and `/health/live`, except where the application has routes of its own (N4). */
import { HttpAdapterHost } from '@nestjs/core'
import type { BotRegistry } from '../bot-registry.js'
import type { FrontDoor } from '../http/front-door.js'
import { servesGet } from '../http/existing-routes.js'
import type { BotmeshHealthIndicator } from './botmesh-health.indicator.js'
import type { Probe } from './health-report.js'

const HEADERS = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
const PROBES: [suffix: string, probe: Probe][] = [
  ['', 'report'],
  ['/ready', 'ready'],
  ['/live', 'live'],
]

export function openHealthRoutes(
  registry: BotRegistry,
  door: FrontDoor,
  indicator: BotmeshHealthIndicator,
  { httpAdapter }: HttpAdapterHost,
): void {
  if (!door.mounted) return
  for (const { options, logger } of registry.all) {
    const base = options.health?.path
    if (base === undefined || door.has(base)) continue
    for (const [suffix, probe] of PROBES) {
      const path = `${base}${suffix}`
      if (servesGet(httpAdapter, path)) {
        logger.warn(
          { path },
          'the application serves this path itself: the ready-made health route is left out; BotmeshHealthIndicator brings its content, `health: false` silences this',
        )
        continue
      }
      door.get(path, () => {
        const { status, body } = indicator.answer(base, probe)
        return { status, headers: HEADERS, body: JSON.stringify(body) }
      })
    }
  }
}
