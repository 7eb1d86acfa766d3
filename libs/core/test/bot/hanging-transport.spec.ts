/** A transport that does not stop in time: its account stays this replica's until it has, or for a lease (P1). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { ProviderError } from '../../src/index.js'
import { Mesh, type Replica } from './support/mesh.js'

const LEASE_MS = 5000
const DRAIN_MS = 1000
let mesh: Mesh
let letGo: () => void = () => undefined

afterEach(async () => {
  letGo()
  await mesh.stop()
})

async function two(): Promise<[Replica, Replica]> {
  mesh = new Mesh((bot) => void bot.onMessage((ctx) => ctx.reply(ctx.body)), {
    exclusive: true,
    leaseMs: LEASE_MS,
    config: { drainMs: DRAIN_MS },
  })
  return [await mesh.add(), await mesh.add()]
}

/** Its transport stops only when `letGo` is called. */
function hang({ provider }: Replica): void {
  const stop = provider.stop.bind(provider)
  const gone = new Promise<void>((resolve) => (letGo = resolve))
  provider.stop = async () => {
    await gone
    await stop()
  }
}

describe('a transport whose stop() hangs', () => {
  it('P1: stop() ends within drainMs and says so; nobody else connects before it has stopped', async () => {
    const [a, b] = await two()
    hang(a)
    const before = mesh.clock.monotonic()
    await mesh.run(a.bot.stop())
    expect(mesh.clock.monotonic() - before).toBeLessThanOrEqual(DRAIN_MS)
    expect(a.errors).toMatchObject([{ code: 'PROVIDER', details: { provider: 'fake:test' } }])
    expect(a.errors[0]).toBeInstanceOf(ProviderError)
    // Held by heartbeats, not only by what is left of the last one.
    await mesh.clock.advance(LEASE_MS * 0.9)
    expect(b.bot.health().role).toBe('follower')
    expect(b.provider.started).toBe(false)
    letGo()
    await mesh.until(() => b.provider.started, 500)
    expect(b.provider.started).toBe(true)
    expect(a.provider.started).toBe(false)
  })

  it('P1, L1: one that never stops holds the account for a lease and no longer', async () => {
    const [a, b] = await two()
    hang(a)
    await mesh.run(a.bot.stop())
    await mesh.clock.advance(LEASE_MS - 100)
    expect(b.bot.health().role).toBe('follower')
    await mesh.until(() => b.bot.health().role === 'leader', 2 * LEASE_MS)
    expect(b.provider.started).toBe(true)
  })
})

const DOWN_MS = 60_000

describe('a leader whose transport is down and hangs', () => {
  it('P3: it resigns all the same, and stands again once its transport has stopped', async () => {
    const [a, b] = await two()
    hang(a)
    a.provider.close('logged out', true)
    await mesh.clock.advance(DOWN_MS + LEASE_MS - 100)
    // Until then its connection could still meet the next one.
    expect(b.provider.started).toBe(false)
    await mesh.until(() => b.provider.started, 1000)
    expect(a.errors).toMatchObject([{ code: 'PROVIDER', details: { provider: 'fake:test' } }])
    expect(mesh.payloads(a, 'coordination:follower').map(({ reason }) => reason)).toEqual(['transport-down'])
    await mesh.run(b.bot.stop())
    await mesh.clock.advance(5 * LEASE_MS)
    expect(a.bot.health().role).toBe('follower')
    letGo()
    await mesh.until(() => a.provider.state.status === 'open', 1000)
    expect(a.bot.health().role).toBe('leader')
  })

  it('P3: one that hangs with the connection of a leadership that was lost does not keep the next one idle', async () => {
    const [a, b] = await two()
    hang(a)
    b.clock.pause()
    a.clock.pause()
    await mesh.clock.advance(2 * LEASE_MS)
    a.clock.resume()
    await mesh.until(() => a.bot.health().role === 'leader', 5 * LEASE_MS)
    b.clock.resume()
    await mesh.until(() => b.provider.started, DOWN_MS + 3 * LEASE_MS)
    expect(a.bot.health().role).toBe('follower')
  })

  it('P3: nor does one whose start() hangs', async () => {
    const [a, b] = await two()
    await mesh.run(b.bot.stop())
    await mesh.run(a.bot.stop())
    const start = a.provider.start.bind(a.provider)
    a.provider.start = async (...args) => {
      await new Promise<void>((resolve) => (letGo = resolve))
      await start(...args)
    }
    await mesh.run(a.bot.start())
    await mesh.run(b.bot.start())
    expect(a.bot.health().role).toBe('leader')
    await mesh.until(() => b.provider.state.status === 'open', DOWN_MS + 3 * LEASE_MS)
    letGo()
    await mesh.clock.advance(LEASE_MS)
    expect(a.provider.started).toBe(false)
  })
})
