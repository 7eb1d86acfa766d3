/** Answers that come in an order that only a backend in trouble produces, played by hand. */
import { describe, expect, it } from '@jest/globals'
import { ManualClock } from '@botmesh/core/testing'
import {
  SessionCoordinator,
  type BackendContext,
  type CoordinationBackend,
  type HeartbeatReply,
  type HeartbeatRequest,
  type ReleaseRequest,
  type TakeReply,
  type TakeRequest,
} from '@botmesh/core'

const ALIVE: HeartbeatReply = { outcome: 'alive', unknown: [], missing: [], waiting: [], repairs: [] }
const LEASE_MS = 3000

/** Each call waits until the test answers it. */
class ByHand implements CoordinationBackend {
  readonly kind = 'by hand'
  context!: BackendContext
  readonly takes: { request: TakeRequest; answer: (reply: TakeReply) => void }[] = []
  readonly beats: { request: HeartbeatRequest; answer: (reply: HeartbeatReply) => void }[] = []
  readonly released: number[] = []

  async open(context: BackendContext): Promise<void> {
    this.context = context
    context.listener.pushLive(true)
  }
  async close(): Promise<void> {}
  sharesStateWith(): boolean {
    return false
  }
  async openSession(): Promise<void> {}
  async closeSession(): Promise<void> {}
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply> {
    return new Promise((answer) => this.beats.push({ request, answer }))
  }
  take(request: TakeRequest): Promise<TakeReply> {
    return new Promise((answer) => this.takes.push({ request, answer }))
  }
  async release({ fence }: ReleaseRequest): Promise<void> {
    this.released.push(fence)
  }
  async withdraw(): Promise<void> {}
  commit(): Promise<never> {
    return Promise.reject(new Error('Nothing is committed here.'))
  }
  async nudge(): Promise<[]> {
    return []
  }
}

describe('I10: a grant that was lost before its take was answered', () => {
  it('is taken again, and what the late answer grants is given back', async () => {
    const clock = new ManualClock()
    const backend = new ByHand()
    const coordinator = new SessionCoordinator({ backend, clock, leaseMs: LEASE_MS })
    await coordinator.start()
    const turn = coordinator.turns.take('k', { waitMs: 60_000 })
    const [first] = backend.takes
    const { ticket, session, key } = first!.request
    const grant = (fence: number) => ({ key, ticket, fence, previousHolder: null })

    // No heartbeat is answered, so that the grant is kept back until one is.
    await clock.advance(LEASE_MS / 2)
    backend.context.listener.granted(session, grant(5))
    const missing = [{ key, ticket, fence: 5 }]
    backend.beats.at(-1)!.answer({ ...ALIVE, missing })
    await clock.advance(0)
    first!.answer({ outcome: 'granted', grant: grant(7) })
    await clock.advance(0)
    expect(backend.released).toEqual([7])

    const again = backend.takes[1]!
    again.answer({ outcome: 'granted', grant: { ...grant(8), ticket: again.request.ticket } })
    expect(await turn).toMatchObject({ key, fence: 8 })
    await coordinator.stop()
  })
})
