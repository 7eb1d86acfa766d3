/**
 * Connects the transport, on this replica alone if it is exclusive (P1–P4).
 *
 *   shared      started by start(), on every replica
 *   follower    stands for `provider:<id>`, transport stopped
 *   leader      elected; transport started under the leadership's signal and fence
 *
 * follower → leader: elected. leader → follower: the leadership is lost (the transport's signal aborts at once), or
 * the transport stayed closed for `providerDownMs` (stopped first, then resigned, so that two sockets of one account
 * never overlap). Starts and stops of the transport are made one after the other, in the order they were decided;
 * what a former start still reports is ignored.
 *
 * A transport that hangs: one that does not begin to connect counts as closed. One that does not stop keeps the
 * leadership for a lease, as its connection may still be there; then another replica may lead, and this one stands again
 * once it has stopped.
 */
import type { Clock, Random, Timer } from '../contracts/clock.js'
import type { Candidacy, Coordinator, FollowReason, Leadership } from '../contracts/coordinator.js'
import {
  BotmeshError,
  CoordinationUnavailableError,
  ProviderError,
  ProviderNotLeaderError,
} from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import type { Message } from '../contracts/message.js'
import type { MessageLog } from '../contracts/message-log.js'
import type { Provider, ProviderSink, ProviderState } from '../contracts/provider.js'
import { Backoff } from './backoff.js'
import { within } from './within.js'

export interface ProviderSessionOptions {
  provider: Provider
  /** Null: shared, every replica connects. */
  coordinator: Coordinator | null
  providerDownMs: number
  clock: Clock
  random: Random
  logger: Logger
  log: MessageLog | undefined
  message(message: Message): Promise<void>
  onLead(name: string, fence: number): void
  onFollow(name: string, reason: FollowReason): void
  onState(state: ProviderState): void
  onPairing(pairing: { kind: 'qr' | 'code'; value: string }): void
  report(error: unknown): void
}

/** After resigning for a transport that is down: long enough for a standby to connect. */
const STAND_AGAIN_MS = 5000
const FIRST_RESTART_MS = 1000
const LONGEST_RESTART_MS = 60_000

export class ProviderSession {
  private candidacy: Candidacy | null = null
  private leadership: Leadership | null = null
  private stopped = false
  /** Counts starts: what belongs to a former one is ignored. */
  private generation = 0
  private abort: AbortController | null = null
  private transitions: Promise<void> = Promise.resolve()
  private downTimer: Timer | null = null
  private restartTimer: Timer | null = null
  private readonly restartPause: Backoff
  private isOpen = false
  /** The transport of this generation has begun to connect, as far as it has said. */
  private begun = false
  /** Does not stand, as its transport does not stop. */
  private sittingOut = false

  constructor(private readonly options: ProviderSessionOptions) {
    this.restartPause = new Backoff(options.random, FIRST_RESTART_MS, LONGEST_RESTART_MS)
  }

  get role(): 'leader' | 'follower' | 'shared' {
    if (this.options.coordinator === null) return 'shared'
    return this.leadership === null ? 'follower' : 'leader'
  }

  /** The transport of this replica is connected, as far as it has said. */
  get open(): boolean {
    return this.isOpen
  }

  /** True where this replica's transport is meant to be connected. */
  get maySend(): boolean {
    return this.role !== 'follower'
  }

  /** @throws ProviderNotLeaderError on a standby (P4). LeaseLostError if the leadership's lease has run out. */
  assertMaySend(): void {
    if (this.options.coordinator === null) return
    if (this.leadership === null) throw new ProviderNotLeaderError(this.options.provider.id)
    this.leadership.assertHeld()
  }

  /** Shared: rejects with what can never work. Exclusive: resolves at once, also on a standby. */
  async start(): Promise<void> {
    const { coordinator, provider } = this.options
    if (coordinator !== null) {
      // A standby's part: its takeover will not wait for this. What fails is said when it is started.
      provider.prepare?.().catch((error: unknown) => {
        this.options.logger.debug({ err: error, provider: provider.id }, 'the transport is not prepared')
      })
      return this.stand(coordinator)
    }
    await this.connect(++this.generation, null, { rejectFinal: true })
  }

  private stand({ elections }: Coordinator): void {
    this.candidacy = elections.campaign(`provider:${this.options.provider.id}`, {
      onLead: (leadership) => this.lead(leadership),
      onFollow: (reason) => {
        // One that was given up, as the transport hangs, has nothing more to say.
        if (!this.sittingOut) this.follow(reason)
      },
    })
  }

  /** Disconnects, then resigns, so that the next leader's connection never meets this one. Idempotent; never rejects. */
  async stop(): Promise<void> {
    if (this.stopped) return this.transitions
    this.stopped = true
    await this.disconnect()
    this.leadership = null
    try {
      await this.candidacy?.stop()
    } catch (error) {
      this.options.report(error)
    }
  }

  private lead(leadership: Leadership): void {
    if (this.stopped) return
    this.leadership = leadership
    const generation = ++this.generation
    this.begun = false
    this.watchDown(generation)
    this.restartPause.reset()
    this.options.onLead(leadership.name, leadership.fence)
    void this.enqueue(() => this.connect(generation, leadership))
  }

  private follow(reason: FollowReason): void {
    const led = this.leadership !== null
    this.leadership = null
    if (led) void this.disconnect()
    this.options.onFollow(`provider:${this.options.provider.id}`, reason)
  }

  private async connect(
    generation: number,
    leadership: Leadership | null,
    { rejectFinal = false } = {},
  ): Promise<void> {
    if (generation !== this.generation || this.stopped || leadership?.signal.aborted === true) return
    const abort = new AbortController()
    this.abort = abort
    const onLost = () => abort.abort(leadership?.signal.reason)
    leadership?.signal.addEventListener('abort', onLost, { once: true })
    try {
      await this.options.provider.start(this.sink(generation, leadership), abort.signal)
      this.noteBegun(generation)
    } catch (error) {
      leadership?.signal.removeEventListener('abort', onLost)
      if (abort.signal.aborted) return
      const final = error instanceof BotmeshError && !error.retryable
      if (final && rejectFinal) throw error
      this.options.report(error)
      if (!final) return this.restartLater(generation, leadership)
      this.setState(generation, { status: 'closed', reason: reasonOf(error), final: true })
    }
  }

  private restartLater(generation: number, leadership: Leadership | null): void {
    this.watchDown(generation)
    this.restartTimer = this.options.clock.setTimeout(() => {
      if (generation === this.generation) void this.enqueue(() => this.connect(generation, leadership))
    }, this.restartPause.next())
  }

  /** Aborts at once; resolves when nothing of the transport runs. */
  private disconnect(): Promise<void> {
    this.generation++
    this.isOpen = false
    this.downTimer?.cancel()
    this.downTimer = null
    this.restartTimer?.cancel()
    this.abort?.abort(new CoordinationUnavailableError('stopped'))
    this.abort = null
    return this.enqueue(() => this.options.provider.stop())
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    const run = this.transitions.then(step).catch((error: unknown) => this.options.report(error))
    this.transitions = run
    return run
  }

  private sink(generation: number, leadership: Leadership | null): ProviderSink {
    const { clock, random, logger, log } = this.options
    const current = () => generation === this.generation
    return {
      message: (message) =>
        current()
          ? this.options.message(message)
          : Promise.reject(new CoordinationUnavailableError('stopped')),
      state: (state) => this.setState(generation, state),
      pairing: (pairing) => {
        if (current()) this.options.onPairing(pairing)
      },
      error: (error) => this.options.report(error),
      logger,
      clock,
      random,
      ...(leadership === null ? {} : { fence: leadership.fence }),
      ...(log === undefined ? {} : { log }),
    }
  }

  private noteBegun(generation: number): void {
    if (generation !== this.generation || this.begun) return
    this.begun = true
    this.downTimer?.cancel()
    this.downTimer = null
  }

  private setState(generation: number, state: ProviderState): void {
    if (generation !== this.generation) return
    this.noteBegun(generation)
    this.isOpen = state.status === 'open'
    if (state.status === 'closed') this.watchDown(generation)
    else if (state.status === 'open') {
      this.restartPause.reset()
      this.downTimer?.cancel()
      this.downTimer = null
    }
    this.options.onState(state)
  }

  /** P3: from the first `closed` on, until it is open again; at first, until it has begun to connect. */
  private watchDown(generation: number): void {
    if (this.leadership === null || this.downTimer !== null) return
    this.downTimer = this.options.clock.setTimeout(() => {
      this.downTimer = null
      if (generation === this.generation) void this.giveWay()
    }, this.options.providerDownMs)
  }

  private async giveWay(): Promise<void> {
    const { coordinator, clock } = this.options
    const gone = this.disconnect()
    const { generation } = this
    const hangs = !(await within(clock, coordinator?.leaseMs ?? 0, gone))
    // Lost and elected again meanwhile: another leadership, with a transport that starts.
    if (!hangs && generation !== this.generation) return
    try {
      await this.candidacy?.resign('transport-down', STAND_AGAIN_MS)
      if (hangs) await this.sitOut(gone)
    } catch (error) {
      this.options.report(error)
    }
  }

  /** Standing with a transport that cannot be started would keep the account from those who could. */
  private async sitOut(gone: Promise<void>): Promise<void> {
    const { coordinator, provider } = this.options
    const reason = 'it does not stop; this replica leaves its account to others until it has'
    const details = { provider: provider.id, reason, final: false }
    this.options.report(new ProviderError(`Transport "${provider.id}": ${reason}.`, details))
    if (this.stopped || coordinator === null) return
    this.sittingOut = true
    await this.candidacy?.stop()
    this.candidacy = null
    await gone
    this.sittingOut = false
    if (!this.stopped) this.stand(coordinator)
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
