/** A backend that connects slowly, and a coordinator that is stopped meanwhile: nothing stays connected. */
import { describe, expect, it } from '@jest/globals'
import { ManualClock, MemoryBackend, MemoryCoordinationHub } from '../../src/testing/index.js'
import { CoordinationUnavailableError, SessionCoordinator, type BackendContext } from '../../src/index.js'

class Slow extends MemoryBackend {
  connected = false
  arrive: () => void = () => undefined

  override async open(context: BackendContext): Promise<void> {
    await new Promise<void>((resolve) => (this.arrive = resolve))
    await super.open(context)
    this.connected = true
  }

  override async close(): Promise<void> {
    this.connected = false
    await super.close()
  }
}

describe('a stop while the backend connects', () => {
  it('closes what has connected too late', async () => {
    const clock = new ManualClock()
    const backend = new Slow(new MemoryCoordinationHub({ clock }))
    const coordinator = new SessionCoordinator({ backend, clock })
    const started = coordinator.start()
    started.catch(() => undefined)
    await clock.settle()
    await coordinator.stop()
    backend.arrive()
    await expect(started).rejects.toThrow(CoordinationUnavailableError)
    await clock.settle()
    expect(backend.connected).toBe(false)
    expect(clock.timers).toBe(0)
  })

  it('a start after that opens it anew', async () => {
    const clock = new ManualClock()
    const backend = new Slow(new MemoryCoordinationHub({ clock }))
    const coordinator = new SessionCoordinator({ backend, clock })
    coordinator.start().catch(() => undefined)
    await clock.settle()
    const { arrive } = backend
    await coordinator.stop()
    const again = coordinator.start()
    await clock.settle()
    arrive()
    await clock.settle()
    backend.arrive()
    await again
    expect(backend.connected).toBe(true)
    await coordinator.stop()
    expect(backend.connected).toBe(false)
  })
})
