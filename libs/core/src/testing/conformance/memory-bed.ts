/** The in-process hub on a clock that the test moves, as a bed for the coordinator suites. */
import type { Coordinator } from '../../contracts/coordinator.js'
import { MemoryCoordinationHub, MemoryCoordinator } from '../../memory/index.js'
import { ManualClock } from '../manual-clock.js'
import type { CoordinationBed } from './coordination-bed.js'

export function memoryBed(
  options: { leaseMs?: number; hub?: MemoryCoordinationHub; clock?: ManualClock } = {},
): CoordinationBed {
  const { leaseMs = 1000, clock = new ManualClock() } = options
  const hub = options.hub ?? new MemoryCoordinationHub({ clock })
  const all: Coordinator[] = []
  const add = <C extends Coordinator>(coordinator: C): C => {
    all.push(coordinator)
    return coordinator
  }
  let processes = 0
  const processId = (): string => `process-${(processes += 1)}`
  const until = async <T>(promise: Promise<T>, limitMs = 60_000): Promise<T> => {
    let settled = false
    void promise.catch(() => undefined).then(() => (settled = true))
    await clock.advanceUntil(() => settled, limitMs)
    return promise
  }
  return {
    leaseMs,
    coordinator: (more = {}) =>
      add(new MemoryCoordinator({ hub, clock, leaseMs, processId: processId(), ...more })),
    stranger: () => add(new MemoryCoordinator({ hub: new MemoryCoordinationHub({ clock }), clock, leaseMs })),
    crash: async (coordinator) => {
      if (coordinator instanceof MemoryCoordinator) coordinator.crash()
      await clock.settle()
    },
    pass: (ms) => clock.advance(ms),
    until,
    elapsed: () => clock.monotonic(),
    wipe: async () => hub.wipe(),
    close: () => until(Promise.all(all.map((one) => one.stop())).then(() => undefined)),
  }
}
