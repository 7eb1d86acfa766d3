/** What the health of the bots means (N4): pure, from their snapshots. Bodies have the shape that Terminus gives. */
import type { BotHealth } from '@botmesh/core'

/** - `report`: everything in order here? - `ready`: send traffic? - `live`: leave the process alone? */
export type Probe = 'report' | 'ready' | 'live'

export interface BotReport {
  status: 'up' | 'down'
  /** `leader` or `follower` of an exclusive transport, else `shared`. */
  role: BotHealth['role']
  transport: { id: string; status: string; reason?: string }
  /** `none` without coordination, else the state of this replica's session in the backend. */
  backend: { status: string; error?: string }
  bot: BotHealth['status']
  ready: boolean
  inFlight: number
  replicaId?: string
  incarnation?: string
}

export interface HealthBody {
  status: 'ok' | 'error' | 'shutting_down'
  info: Record<string, BotReport>
  error: Record<string, BotReport>
  details: Record<string, BotReport>
}

export interface Subject {
  health: BotHealth
  standby: 'ready' | 'not-ready'
}

/**
 * - `live`: always up; a standby, a lost backend or a closed transport is no reason to restart the process.
 * - `ready`: running, the backend proves this replica alive, and the transport is connected; a standby counts as
 *   ready only if told so.
 * - `report`: running, with its backend, and its transport not closed unless it stands by.
 */
export function reportOf({ health, standby }: Subject, probe: Probe): BotReport {
  const { coordinator, provider } = health
  const state = coordinator?.status
  const { state: transport } = provider
  return {
    status: probe === 'live' || isUp(health, standby, probe) ? 'up' : 'down',
    role: health.role,
    transport: {
      id: provider.id,
      status: health.role === 'follower' && transport.status === 'closed' ? 'standby' : transport.status,
      ...(transport.status === 'closed' && health.role !== 'follower' ? { reason: transport.reason } : {}),
    },
    backend: {
      status: state?.status ?? 'none',
      ...(state?.status === 'unreachable' ? { error: state.error } : {}),
    },
    bot: health.status,
    ready: health.ready,
    inFlight: health.inFlight,
    ...(coordinator === null
      ? {}
      : { replicaId: coordinator.replicaId, incarnation: coordinator.incarnation }),
  }
}

export function bodyOf(reports: Record<string, BotReport>, draining: boolean): HealthBody {
  const pick = (status: BotReport['status']) =>
    Object.fromEntries(Object.entries(reports).filter(([, report]) => report.status === status))
  const error = pick('down')
  return {
    status: draining ? 'shutting_down' : Object.keys(error).length === 0 ? 'ok' : 'error',
    info: pick('up'),
    error,
    details: reports,
  }
}

function isUp(health: BotHealth, standby: Subject['standby'], probe: Exclude<Probe, 'live'>): boolean {
  if (health.status !== 'running') return false
  if (health.coordinator !== null && health.coordinator.status.status !== 'live') return false
  const follows = health.role === 'follower'
  if (probe === 'ready') return health.ready || (follows && standby === 'ready')
  return follows || health.provider.state.status !== 'closed'
}
