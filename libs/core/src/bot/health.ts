/** What health checks are told of a bot (N4). No I/O. */
import type { BotHealth, BotStatus } from './face.js'
import type { ResolvedOptions } from './options.js'
import type { RunningBot } from './running-bot.js'

export function healthOf(options: ResolvedOptions, status: BotStatus, running: RunningBot | null): BotHealth {
  const { name, coordinator, provider, exclusive } = options
  return {
    bot: name,
    status,
    role: running?.session.role ?? (exclusive ? 'follower' : 'shared'),
    ready:
      status === 'running' && running?.session.open === true && coordinator?.status.status !== 'unreachable',
    provider: { id: provider.id, state: provider.state },
    coordinator:
      coordinator === null
        ? null
        : {
            replicaId: coordinator.replicaId,
            incarnation: coordinator.incarnation,
            status: coordinator.status,
          },
    inFlight: running?.inbox.inFlight ?? 0,
  }
}
