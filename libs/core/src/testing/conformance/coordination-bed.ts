/** What a driver's author provides so that the coordinator suites can run on the driver. */
import type { Coordinator, Turn } from '../../contracts/coordinator.js'
import type { CoordinatorOptions } from '../../runtime/session-coordinator.js'

/** What a driver may do differently. Each difference is stated here; nothing is skipped silently. */
export interface CoordinatorGuarantees {
  /** `Turn.commit({ inboundId })` works, so that committed ids are duplicates (Z3). */
  commits: boolean
  /** A hand-off between replicas is pushed, not polled (Z1). */
  pushes: boolean
}

/** One empty backend with everything that runs on it; made for each test. */
export interface CoordinationBed {
  readonly leaseMs: number
  /** A new coordinator, as another process would have it; not started. It is stopped by `close`. */
  coordinator(options?: CoordinatorOptions): Coordinator
  /** A coordinator under another prefix of the same server (C4). */
  stranger(): Coordinator
  /** Ends a coordinator's activity without releasing anything. */
  crash(coordinator: Coordinator): Promise<void>
  /** Lets time pass. */
  pass(ms: number): Promise<void>
  /** Waits for `promise` while time passes. @throws Error after `limitMs`. */
  until<T>(promise: Promise<T>, limitMs?: number): Promise<T>
  /** Elapsed time, for bounds. */
  elapsed(): number
  /** The server restarts empty (scenario 9). */
  wipe(): Promise<void>
  close(): Promise<void>
}

export interface CoordinatorFixture {
  /** Of the driver, for the suite's title. */
  name: string
  guarantees: CoordinatorGuarantees
  bed(): Promise<CoordinationBed>
  /** Rounds of the races; default 200. */
  rounds?: number
}

/** Takes and insists on a turn. */
export async function takeTurn(
  bed: CoordinationBed,
  coordinator: Coordinator,
  key: string,
  options: Parameters<Coordinator['turns']['take']>[1] = {},
): Promise<Turn> {
  const turn = await bed.until(coordinator.turns.take(key, options))
  if (turn === 'duplicate') throw new Error(`"${key}" answered duplicate.`)
  return turn
}

/** A promise that a test may look at without waiting. */
export interface Watched<T> {
  readonly promise: Promise<T>
  settled: 'pending' | 'resolved' | 'rejected'
  value: T | undefined
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { promise, settled: 'pending', value: undefined }
  promise.then(
    (value) => {
      watched.settled = 'resolved'
      watched.value = value
    },
    () => {
      watched.settled = 'rejected'
    },
  )
  return watched
}

/** Resolves once a ticket of `key` stands in line behind a holder. */
export async function queued(
  bed: CoordinationBed,
  coordinator: Coordinator,
  key: string,
  options: Parameters<Coordinator['turns']['take']>[1] = {},
): Promise<Watched<Turn | 'duplicate'>> {
  let watched: Watched<Turn | 'duplicate'> | undefined
  await bed.until(
    new Promise<void>((resolve) => {
      watched = watch(coordinator.turns.take(key, { ...options, onTicket: resolve }))
    }),
  )
  if (!watched) throw new Error('unreachable: the promise ran')
  return watched
}

/** Runs `test` on a bed of its own and closes it whatever happens. */
export function onBed(
  fixture: CoordinatorFixture,
  test: (bed: CoordinationBed) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const bed = await fixture.bed()
    try {
      await test(bed)
    } finally {
      await bed.close()
    }
  }
}
