/** What the snapshots of bots mean for a probe. */
import { describe, expect, it } from '@jest/globals'
import type { BotHealth, CoordinatorStatus } from '@botmesh/core'
import { bodyOf, reportOf } from '../src/health/health-report.js'

function health(changes: Partial<BotHealth> & { backend?: CoordinatorStatus } = {}): BotHealth {
  const { backend = { status: 'live' }, ...rest } = changes
  return {
    bot: 'default',
    status: 'running',
    role: 'shared',
    ready: true,
    provider: { id: 'fake:a', state: { status: 'open' } },
    coordinator: { replicaId: 'a', incarnation: 'a#1', status: backend },
    inFlight: 0,
    ...rest,
  }
}

const STANDBY = health({
  role: 'follower',
  ready: false,
  provider: { id: 'fake:a', state: { status: 'closed', reason: 'not started' } },
})
const NO_BACKEND = health({ backend: { status: 'unreachable', sinceMs: 3000, error: 'ECONNREFUSED' } })

describe('N4: probes', () => {
  it('a standby is in order, alive, and ready only if told so', () => {
    expect(reportOf({ health: STANDBY, standby: 'not-ready' }, 'report')).toMatchObject({
      status: 'up',
      role: 'follower',
      transport: { id: 'fake:a', status: 'standby' },
    })
    expect(reportOf({ health: STANDBY, standby: 'not-ready' }, 'ready').status).toBe('down')
    expect(reportOf({ health: STANDBY, standby: 'ready' }, 'ready').status).toBe('up')
    expect(reportOf({ health: STANDBY, standby: 'not-ready' }, 'live').status).toBe('up')
  })

  it('scenario 26: without its backend a replica is not ready, and alive all the same', () => {
    expect(reportOf({ health: NO_BACKEND, standby: 'ready' }, 'ready')).toMatchObject({
      status: 'down',
      backend: { status: 'unreachable', error: 'ECONNREFUSED' },
    })
    expect(reportOf({ health: NO_BACKEND, standby: 'ready' }, 'live').status).toBe('up')
  })

  it('a leader whose transport is closed is not in order, and says why', () => {
    const closed = health({
      role: 'leader',
      ready: false,
      provider: { id: 'fake:a', state: { status: 'closed', reason: 'logged out', final: true } },
    })
    expect(reportOf({ health: closed, standby: 'ready' }, 'report')).toMatchObject({
      status: 'down',
      transport: { status: 'closed', reason: 'logged out' },
    })
  })

  it('a bot that starts or stops is not ready', () => {
    for (const status of ['idle', 'starting', 'stopping', 'stopped'] as const) {
      expect(reportOf({ health: health({ status }), standby: 'ready' }, 'ready').status).toBe('down')
    }
  })

  it('the body has the shape of Terminus', () => {
    const up = reportOf({ health: health(), standby: 'not-ready' }, 'ready')
    const down = reportOf({ health: NO_BACKEND, standby: 'not-ready' }, 'ready')
    expect(bodyOf({ a: up, b: down }, false)).toEqual({
      status: 'error',
      info: { a: up },
      error: { b: down },
      details: { a: up, b: down },
    })
    expect(bodyOf({ a: up }, true).status).toBe('shutting_down')
  })
})
