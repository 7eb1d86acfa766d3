/** A coordinator over several shards: the suite of all drivers, and what a loss in one of them costs (docs/architecture/redis-topologies.md). */
import { describe, expect, it } from '@jest/globals'
import {
  ManualClock,
  MemoryBackend,
  MemoryCoordinationHub,
  coordinatorSuite,
  memoryBed,
} from '@botmesh/core/testing'
import {
  SessionCoordinator,
  type Coordinator,
  type CoordinatorOptions,
  type ShardedBackend,
} from '@botmesh/core'

const SHARDS = 3
/** By the last letter of the key. */
const shardOf = (key: string): number => key.charCodeAt(key.length - 1) % SHARDS

class Sharded extends SessionCoordinator {
  crash(): Promise<void> {
    return this.abandon()
  }
}

function sharded(hubs: readonly MemoryCoordinationHub[], options: CoordinatorOptions): Sharded {
  const backends = hubs.map((hub) => new MemoryBackend(hub))
  const backend: ShardedBackend = {
    shards: hubs.length,
    shardOf,
    shard: (index) => {
      const one = backends[index]
      if (!one) throw new RangeError(`There is no shard ${index}.`)
      return one
    },
  }
  return new Sharded({ ...options, backend })
}

const hubsOn = (clock: ManualClock): MemoryCoordinationHub[] =>
  Array.from({ length: SHARDS }, () => new MemoryCoordinationHub({ clock }))

coordinatorSuite(
  { describe, it, expect },
  {
    name: 'three shards in memory',
    guarantees: { commits: true, pushes: true },
    bed: async () => {
      const clock = new ManualClock()
      const hubs = hubsOn(clock)
      const base = memoryBed({ clock })
      const all: Coordinator[] = []
      let processes = 0
      const make = (on: MemoryCoordinationHub[], more: CoordinatorOptions): Sharded => {
        processes += 1
        const one = sharded(on, { clock, leaseMs: base.leaseMs, processId: `process-${processes}`, ...more })
        all.push(one)
        return one
      }
      return {
        ...base,
        coordinator: (more = {}) => make(hubs, more),
        stranger: () => make(hubsOn(clock), {}),
        crash: async (one) => {
          if (one instanceof Sharded) void one.crash()
          await clock.settle()
        },
        wipe: async () => hubs.forEach((hub) => hub.wipe()),
        close: () => base.until(Promise.all(all.map((one) => one.stop())).then(() => undefined)),
      }
    },
  },
)

describe('several shards', () => {
  it('C3, T7: the loss of one shard’s session costs its turns only, and begins a new incarnation', async () => {
    const clock = new ManualClock()
    const hubs = hubsOn(clock)
    const bed = memoryBed({ clock })
    const until = <T>(work: Promise<T>): Promise<T> => bed.until(work)
    const coordinator = sharded(hubs, { clock, leaseMs: 1000 })
    const take = async (key: string) => {
      const turn = await until(coordinator.turns.take(key))
      if (turn === 'duplicate') throw new Error('duplicate')
      return turn
    }
    const lost: string[] = []
    coordinator.onLost(({ key }) => lost.push(key))
    const [a, b] = [await take('a'), await take('b')]
    const before = coordinator.incarnation
    hubs[shardOf('a')]?.wipe()
    await until(new Promise((resolve) => a.signal.addEventListener('abort', resolve)))
    expect(lost).toEqual(['a'])
    b.assertHeld()
    expect(coordinator.incarnation).not.toBe(before)
    await until(b.release())
    expect((await take('b')).previousHolder).toBe(before)
    const again = await take('a')
    await until(again.release())
    expect((await take('a')).previousHolder).toBe(coordinator.incarnation)
    await until(coordinator.stop())
    await bed.close()
  })
})
