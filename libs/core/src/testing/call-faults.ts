/**
 * A fault at exactly one call: the replica dies right after the n-th call to its drivers took effect, or the reply of
 * the n-th call is lost. Running a scenario for n = 1, 2, 3, … until it completes without the fault covers every
 * await point at which a driver is asked.
 */
import { CoordinationUnavailableError, StoreError } from '../contracts/errors.js'
import type { Coordinator } from '../contracts/coordinator.js'
import type { CoordinationBackend } from '../runtime/coordination-backend.js'

export interface CallFaultOptions {
  /** Which call, from 1. */
  at: number
  what: 'crash' | 'lose-reply'
  /** Called when the replica is to die: crash its coordinator, abandon its bot. */
  onCrash?: () => void
  /** Which calls count; default all. */
  counts?: (name: string) => boolean
}

/** Methods that only look at the object, or belong to its own life. */
const FREE = new Set([
  'sharesStateWith',
  'sharesBackendWith',
  'close',
  'open',
  'subscribe',
  'leases',
  'onLost',
])
const PARTS = new Set(['journal', 'outbox', 'log'])

interface CoordinatedStore {
  coordinator(options?: object): Coordinator
}

export class CallFaults {
  /** Calls so far, with their names. */
  readonly calls: string[] = []
  /** The fault has happened. */
  hit = false
  private dead = false

  constructor(private readonly options: CallFaultOptions) {}

  /** For the `wrap` option of a coordinator. */
  backend(backend: CoordinationBackend): CoordinationBackend {
    return this.wrap(
      backend,
      'backend',
      (name) => new CoordinationUnavailableError('unreachable', { cause: name }),
    )
  }

  /**
   * Any store; its journal, outbox and log too. The coordinators that it makes (if it can) have their backend wrapped
   * by the same counter, and share the backend with the wrapped store.
   */
  store<S extends object>(store: S): S {
    const failure = (name: string): Error =>
      new StoreError('The reply was lost.', { store: 'faulty', operation: name }, { retryable: true })
    const wrapped: S = this.wrap(store, 'store', failure, (coordinated) => (options: object = {}) => {
      const wrap = (backend: CoordinationBackend): CoordinationBackend => this.backend(backend)
      const coordinator = coordinated.coordinator({ ...options, wrap })
      const shares = coordinator.sharesBackendWith.bind(coordinator)
      coordinator.sharesBackendWith = (other) => shares(other === wrapped ? store : other)
      return coordinator
    })
    return wrapped
  }

  private wrap<T extends object>(
    target: T,
    path: string,
    failure: (name: string) => Error,
    coordinatorOf?: (store: CoordinatedStore) => unknown,
  ): T {
    const made = new Map<PropertyKey, unknown>()
    return new Proxy(target, {
      get: (_target, property) => {
        const value: unknown = Reflect.get(target, property, target)
        const name = String(property)
        if (made.has(property)) return made.get(property)
        let shown: unknown = value
        if (name === 'coordinator' && coordinatorOf && typeof value === 'function') {
          shown = coordinatorOf(target as unknown as CoordinatedStore)
        } else if (PARTS.has(name) && typeof value === 'object' && value !== null) {
          shown = this.wrap(value, `${path}.${name}`, failure)
        } else if (typeof value === 'function') {
          const call = value.bind(target) as (...args: unknown[]) => unknown
          shown = FREE.has(name)
            ? call
            : (...args: unknown[]) => this.call(`${path}.${name}`, () => call(...args), failure)
        } else {
          return value
        }
        made.set(property, shown)
        return shown
      },
    })
  }

  private async call(name: string, work: () => unknown, failure: (name: string) => Error): Promise<unknown> {
    // A dead process neither asks nor hears.
    if (this.dead) return new Promise(() => undefined)
    const counted = this.options.counts?.(name) ?? true
    if (counted) this.calls.push(name)
    if (!counted || this.hit || this.calls.length !== this.options.at) return work()
    this.hit = true
    await work()
    if (this.options.what === 'lose-reply') throw failure(name)
    this.dead = true
    this.options.onCrash?.()
    return new Promise(() => undefined)
  }
}
