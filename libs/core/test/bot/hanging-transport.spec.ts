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
