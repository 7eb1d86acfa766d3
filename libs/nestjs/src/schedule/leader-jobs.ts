/**
 * The elections behind `@LeaderOnly` (N6): one candidacy per bot and job name, from start to drain. The leadership is
 * kept between runs, so that two replicas whose clocks differ never both run one occurrence.
 *
 * For jobs made while the application runs (`SchedulerRegistry.addCronJob`, a bare `setInterval`), which no decorator
 * sees, inject it: `leaderJobs.wrap('report', () => …)` is the function to give to the timer.
 */
import { Inject, Injectable } from '@nestjs/common'
import {
  ConfigError,
  describeValue,
  refuseUnknownOptions,
  requireText,
  systemClock,
  type Candidacy,
} from '@botmesh/core'
import { BotRegistry, type RegisteredBot } from '../bot-registry.js'
import type { LeaderOnlyOptions } from '../decorators/leader-only.js'
import type { BotSelection, LeaderJobMetadata } from '../decorators/metadata.js'
import { bindGate } from './leader-gate.js'

interface Job {
  readonly name: string
  readonly owner: RegisteredBot
  candidacy: Candidacy | null
}

@Injectable()
export class LeaderJobs {
  /** By bot and name. */
  private readonly jobs = new Map<string, Job>()
  private readonly running = new Set<Promise<unknown>>()
  private draining = false
  private started = false

  constructor(@Inject(BotRegistry) private readonly registry: BotRegistry) {}

  /**
   * Wraps a function so that it runs on one replica only; elsewhere a call resolves to undefined at once. Jobs of one
   * name, decorated ones included, have one leader: of many short-lived jobs let all have the same name, as each name is
   * stood for until the application ends.
   * @param name of the job; the election is `job:<name>`.
   * @throws ConfigError for an empty name or an unknown bot.
   */
  wrap<Args extends unknown[], Result>(
    name: string,
    work: (...args: Args) => Result,
    options: LeaderOnlyOptions = {},
  ): (...args: Args) => Promise<Awaited<Result> | undefined> {
    requireText('name', name)
    refuseUnknownOptions('LeaderJobs.wrap()', options, ['bot'])
    if (typeof work !== 'function') {
      throw new ConfigError(
        `The job "${name}" given to LeaderJobs.wrap() is ${describeValue(work)}; accepted: a function.`,
        { option: 'work' },
      )
    }
    const job = this.jobOf(name, options.bot, `LeaderJobs.wrap("${name}")`)
    if (this.started) this.stand(job)
    const led = (args: Args) => this.run(job, () => work(...args)) as Promise<Awaited<Result> | undefined>
    return (...args) => led(args)
  }

  /** For the module: the decorated methods of an instance. @throws ConfigError for an unknown bot. */
  add(instance: object, declared: LeaderJobMetadata[]): void {
    const own = new Map<string, Job>()
    for (const { name, bot } of declared) {
      own.set(name, this.jobOf(name, bot, `@LeaderOnly("${name}") of class ${instance.constructor.name}`))
    }
    bindGate(instance, { run: (name, work) => this.run(own.get(name), work) })
  }

  /** For the module: stands for every job. Idempotent. */
  start(): void {
    this.started = true
    for (const job of this.jobs.values()) this.stand(job)
  }

  /**
   * For the module: begins no run any more, waits for those under way (at most `limitMs`), then resigns, so that another replica
   * never starts a job that still runs here.
   */
  async stop(limitMs: number): Promise<void> {
    this.draining = true
    if (this.running.size > 0) {
      let timer: { cancel(): void } | undefined
      const limit = new Promise<void>((resolve) => (timer = systemClock.setTimeout(resolve, limitMs)))
      await Promise.race([Promise.allSettled(this.running), limit])
      timer?.cancel()
      if (this.running.size > 0) {
        const { logger } = [...this.jobs.values()][0]?.owner ?? {}
        logger?.warn(
          { jobs: this.running.size, limitMs },
          'leader-only jobs still run at shutdown: resigning all the same',
        )
      }
    }
    await Promise.all([...this.jobs.values()].map(async (job) => await job.candidacy?.stop()))
  }

  private jobOf(name: string, bot: BotSelection | undefined, owner: string): Job {
    const [selected, ...others] = bot === '*' ? [] : this.registry.select(bot, owner)
    if (selected === undefined || others.length > 0) {
      throw new ConfigError(`${owner}: one bot elects, not ${bot === '*' ? "'*'" : 'several'}.`, {
        option: 'bot',
        value: bot,
      })
    }
    const key = JSON.stringify([selected.name, name])
    const job = this.jobs.get(key) ?? { name, owner: selected, candidacy: null }
    this.jobs.set(key, job)
    return job
  }

  private stand(job: Job): void {
    const { logger, coordinator, coordinated } = job.owner
    // One process: nobody to elect among. Draining: too late to lead.
    if (!coordinated || this.draining) return
    job.candidacy ??= coordinator.elections.campaign(`job:${job.name}`, {
      onLead: ({ fence }) => logger.info({ job: job.name, fence }, 'this replica runs the job'),
      onFollow: (reason) => logger.info({ job: job.name, reason }, 'this replica does not run the job'),
    })
  }

  private async run(job: Job | undefined, work: () => unknown): Promise<unknown> {
    if (this.draining || job === undefined || !leads(job)) return undefined
    const result = (async () => await work())()
    this.running.add(result)
    try {
      return await result
    } finally {
      this.running.delete(result)
    }
  }
}

function leads({ owner, candidacy }: Job): boolean {
  if (!owner.coordinated) return true
  const leadership = candidacy?.leadership ?? null
  if (leadership === null || leadership.signal.aborted) return false
  try {
    leadership.assertHeld()
    return true
  } catch {
    // Lost this moment: the candidacy's listener reports it, and the next leader runs the job.
    return false
  }
}
