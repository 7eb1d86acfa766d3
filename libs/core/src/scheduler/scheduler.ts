/**
 * Durable tasks (J1): one replica at a time leads the scheduler, and runs each task's occurrences one after the other.
 * What has been begun and done stands in the store, fenced, so that a successor neither forgets an occurrence nor repeats
 * one that was ended (ADR 9).
 */
import type { Clock, Random, Timer } from '../contracts/clock.js'
import type { Candidacy, Leadership } from '../contracts/coordinator.js'
import { ConfigError } from '../contracts/errors.js'
import { LeaseElection } from './lease-election.js'
import type { ResolvedScheduler } from './options.js'
import { TaskRow, taskKey, type TaskStore } from './task-row.js'
import { TaskTerm, type TaskDefinition, type TermHost } from './task-term.js'

export interface SchedulerHost extends TermHost {
  readonly clock: Clock
  readonly random: Random
  readonly store: TaskStore
  /** Longest that `stop` waits for runs to end: most of it undisturbed, the rest after their signal. */
  readonly stopMs: number
}

/** Of `stopMs`, what a run has to end by itself. */
const UNDISTURBED = 0.8

interface Entry {
  definition: TaskDefinition
  term: TaskTerm | null
}

export class Scheduler {
  private readonly tasks = new Map<string, Entry>()
  /** Terms that are not over: those of now, and runs that outlive their task or their leadership. */
  private readonly live = new Set<TaskTerm>()
  private candidacy: Candidacy | null = null
  private leadership: Leadership | null = null
  private started = false

  constructor(
    private readonly options: ResolvedScheduler,
    private readonly host: SchedulerHost,
  ) {}

  /** @throws ConfigError for an id that is taken. @returns ends the task on this replica. */
  add(definition: TaskDefinition): () => void {
    const { id } = definition
    if (this.tasks.has(id)) {
      throw new ConfigError(`Two tasks have the id "${id}": each durable task needs an id of its own.`, {
        option: 'id',
        value: id,
      })
    }
    const entry: Entry = { definition, term: null }
    this.tasks.set(id, entry)
    if (this.started) this.stand()
    if (this.leadership !== null) this.begin(entry, this.leadership)
    return () => this.remove(entry)
  }

  /** Stands for the leadership if there is anything to lead. Idempotent. */
  start(): void {
    this.started = true
    this.stand()
  }

  /**
   * Begins nothing more, waits for runs to end, then resigns: the next leader never finds a task at work, unless it
   * did not end when told to. Never rejects.
   */
  async stop(): Promise<void> {
    this.started = false
    this.leadership = null
    const { clock, stopMs } = this.host
    const terms = [...this.live]
    for (const term of terms) term.quit()
    const over = Promise.all(terms.map((term) => term.over))
    if (!(await endsWithin(clock, stopMs * UNDISTURBED, over))) {
      for (const term of terms) term.interrupt()
      if (!(await endsWithin(clock, stopMs * (1 - UNDISTURBED), over)))
        this.host.logger.warn(
          { scheduler: this.options.name },
          'a task still runs at the stop: resigning all the same',
        )
    }
    for (const term of terms) term.abandon()
    const { candidacy } = this
    this.candidacy = null
    await candidacy?.stop().catch((error: unknown) => this.host.report(error))
  }

  private stand(): void {
    if (this.candidacy !== null || this.tasks.size === 0) return
    const { lease, leaseMs, name } = this.options
    const { clock, logger } = this.host
    const elections =
      lease.kind === 'coordinator'
        ? lease.coordinator.elections
        : new LeaseElection({ leases: lease.leases, leaseMs, clock, logger })
    this.candidacy = elections.campaign(`scheduler:${name}`, {
      onLead: (leadership) => this.lead(leadership),
      onFollow: (reason) => {
        if (this.leadership !== null) this.endTerms(this.leadership)
        this.leadership = null
        logger.info({ scheduler: name, reason }, 'this replica does not run the durable tasks')
      },
    })
  }

  private lead(leadership: Leadership): void {
    if (!this.started) return
    const { name } = this.options
    this.host.logger.info({ scheduler: name, fence: leadership.fence }, 'this replica runs the durable tasks')
    this.leadership = leadership
    // One for all: tasks may be many, and come and go.
    leadership.signal.addEventListener('abort', () => this.endTerms(leadership), { once: true })
    for (const entry of this.tasks.values()) this.begin(entry, leadership)
  }

  private endTerms(leadership: Leadership): void {
    for (const term of this.live) if (term.leadership === leadership) term.lose()
  }

  private begin(entry: Entry, leadership: Leadership): void {
    const { store, random } = this.host
    const { id } = entry.definition
    entry.term?.quit()
    const former = [...this.live].filter((term) => term.id === id).map((term) => term.over)
    const row = new TaskRow(store, taskKey(this.options.name, id), random, (error) => this.host.report(error))
    const term = new TaskTerm(this.host, entry.definition, row, leadership, former)
    entry.term = term
    this.live.add(term)
    void term.over.then(() => this.live.delete(term))
  }

  private remove(entry: Entry): void {
    const { id } = entry.definition
    if (this.tasks.get(id) === entry) this.tasks.delete(id)
    entry.term?.quit()
  }
}

/** True if `work` was done within `ms`. */
function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer: Timer = clock.setTimeout(() => resolve(false), ms)
    void work.then(() => {
      timer.cancel()
      resolve(true)
    })
  })
}
