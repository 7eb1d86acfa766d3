/**
 * A fault at exactly one call: the replica dies right after the n-th call to its drivers took effect, or the reply of
 * the n-th call is lost. Running a scenario for n = 1, 2, 3, … until it completes without the fault covers every
 * await point at which a driver is asked.
 *
 * The same wrapping plays a process that dies (`kill`) or stands still (`pause`, `resume`) at a moment that the test
 * chooses: what its calls did has happened, but it does not hear of it any more, or not yet.
 */
import { CoordinationUnavailableError, SendError, StoreError } from '../contracts/errors.js'
import type { Coordinator } from '../contracts/coordinator.js'
import type { Provider } from '../contracts/provider.js'
import type { BackendContext, BackendListener, CoordinationBackend } from '../runtime/coordination-backend.js'

export interface CallFaultOptions {
  /** Which call, from 1; default none. */
  at?: number
  what?: 'crash' | 'lose-reply' | 'crash-in-flight'
  /** Of `crash-in-flight`: lets the request arrive, later, when another replica may have taken over. Default: never. */
  arrive?: (request: () => void, name: string) => void
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
/** Of a provider only sending is a call that something depends on. */
const PROVIDER_CALLS = new Set(['send'])

interface CoordinatedStore {
  coordinator(options?: object): Coordinator
}

export class CallFaults {
  /** Calls so far, with their names. */
  readonly calls: string[] = []
  /** The fault has happened. */
  hit = false
  private dead = false
  private paused: Promise<void> | null = null
  private unpause: () => void = () => undefined

  constructor(private readonly options: CallFaultOptions = {}) {}

  get alive(): boolean {
    return !this.dead
  }

  /** From now on nothing that it asks is answered, and no push reaches it. Its timers are the test's to stop. */
  kill(): void {
    this.dead = true
  }

  /** Until `resume` it hears nothing; what it asked before is done all the same. */
  pause(): void {
    this.paused ??= new Promise((resolve) => (this.unpause = resolve))
  }

  resume(): void {
    this.paused = null
    this.unpause()
  }

  /** For the `wrap` option of a coordinator. */
  backend(backend: CoordinationBackend): CoordinationBackend {
    const open = (context: BackendContext): Promise<void> =>
      backend.open({ ...context, listener: this.listener(context.listener) })
    return this.wrap(
      backend,
      'backend',
      (name) => new CoordinationUnavailableError('unreachable', { cause: name }),
      { open },
    )
  }

  /** A transport: its sends count. A send whose reply is lost was made, and is uncertain for the caller. */
  provider<P extends Provider>(provider: P): P {
    const failure = (): Error =>
      new SendError('The reply was lost.', { provider: provider.id, outcome: 'uncertain' })
    return this.wrap(provider, 'provider', failure, {}, PROVIDER_CALLS)
  }

  /**
   * Any store; its journal, outbox and log too. The coordinators that it makes (if it can) have their backend wrapped
   * by the same counter, and share the backend with the wrapped store.
   */
  store<S extends object>(store: S): S {
    const failure = (name: string): Error =>
      new StoreError('The reply was lost.', { store: 'faulty', operation: name }, { retryable: true })
    const coordinator = (options: object = {}): Coordinator => {
      const wrap = (backend: CoordinationBackend): CoordinationBackend => this.backend(backend)
      const made = (store as unknown as CoordinatedStore).coordinator({ ...options, wrap })
      const shares = made.sharesBackendWith.bind(made)
      made.sharesBackendWith = (other) => shares(other === wrapped ? store : other)
      return made
    }
    const wrapped: S = this.wrap(store, 'store', failure, 'coordinator' in store ? { coordinator } : {})
    return wrapped
  }

  /** @param instead what is shown in place of a member. @param counted the only methods that are calls; default all. */
  private wrap<T extends object>(
    target: T,
    path: string,
    failure: (name: string) => Error,
    instead: Readonly<Record<string, unknown>> = {},
    counted?: ReadonlySet<string>,
  ): T {
    const made = new Map<PropertyKey, unknown>(Object.entries(instead))
    return new Proxy(target, {
      get: (_target, property) => {
        if (made.has(property)) return made.get(property)
        const value: unknown = Reflect.get(target, property, target)
        const name = String(property)
        let shown: unknown
        if (PARTS.has(name) && typeof value === 'object' && value !== null) {
          shown = this.wrap(value, `${path}.${name}`, failure)
        } else if (typeof value === 'function') {
          const call = value.bind(target) as (...args: unknown[]) => unknown
          const free = counted === undefined ? FREE.has(name) : !counted.has(name)
          shown = free
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
    if (this.dead) return NEVER
    const counts = this.options.counts?.(name) ?? true
    if (counts) this.calls.push(name)
    if (!counts || this.hit || this.calls.length !== this.options.at) return this.heard(work)
    this.hit = true
    if (this.options.what === 'crash-in-flight') this.options.arrive?.(() => void settle(work), name)
    else await work()
    if (this.options.what === 'lose-reply') throw failure(name)
    this.dead = true
    this.options.onCrash?.()
    return NEVER
  }

  /** What became of `work`, once and if the process hears of it. */
  private async heard(work: () => unknown): Promise<unknown> {
    try {
      return await work()
    } finally {
      while (this.paused !== null) await this.paused
      if (this.dead) await NEVER
    }
  }

  private listener(inner: BackendListener): BackendListener {
    const hear = (tell: () => void): void => {
      if (this.dead) return
      if (this.paused === null) tell()
      else void this.paused.then(() => hear(tell))
    }
    return {
      granted: (session, grant) => hear(() => inner.granted(session, grant)),
      duplicate: (session, key, ticket) => hear(() => inner.duplicate(session, key, ticket)),
      pushLive: (live) => hear(() => inner.pushLive(live)),
      reconnected: () => hear(() => inner.reconnected()),
    }
  }
}

/** Whoever asked will never know. */
async function settle(work: () => unknown): Promise<void> {
  try {
    await work()
  } catch {
    // Refused, most likely: that is what fences are for.
  }
}

const NEVER = new Promise<never>(() => undefined)
