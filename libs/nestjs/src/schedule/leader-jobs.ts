/**
 * The elections behind `@LeaderOnly` (N6): one candidacy per bot and job name, from start to drain. The leadership is
 * kept between runs, so that two replicas whose clocks differ never both run one occurrence.
 */
import { Inject, Injectable } from '@nestjs/common'
import { ConfigError, systemClock, type Candidacy } from '@botmesh/core'
import { BotRegistry, type RegisteredBot } from '../bot-registry.js'
import type { LeaderJobMetadata } from '../decorators/metadata.js'
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

  constructor(@Inject(BotRegistry) private readonly registry: BotRegistry) {}

  /** @throws ConfigError for an unknown bot. */
  add(instance: object, declared: LeaderJobMetadata[]): void {
    const own = new Map<string, Job>()
    for (const { name, bot } of declared) {
      if (bot === '*') {
        throw new ConfigError(
          `@LeaderOnly("${name}") of class ${instance.constructor.name}: one bot elects, not '*'.`,
          {
            option: 'bot',
            value: bot,
          },
        )
      }
      for (const owner of this.registry.select(
        bot,
        `@LeaderOnly("${name}") of class ${instance.constructor.name}`,
      )) {
        const key = JSON.stringify([owner.name, name])
        const job = this.jobs.get(key) ?? { name, owner, candidacy: null }
        this.jobs.set(key, job)
        own.set(name, job)
      }
    }
    bindGate(instance, { run: (name, work) => this.run(own.get(name), work) })
  }

  /** Stands for every job. Idempotent. */
  start(): void {
    for (const job of this.jobs.values()) {
      const { logger, coordinator, coordinated } = job.owner
      // One process: nobody to elect among.
      if (!coordinated) continue
      job.candidacy ??= coordinator.elections.campaign(`job:${job.name}`, {
        onLead: ({ fence }) => logger.info({ job: job.name, fence }, 'this replica runs the job'),
        onFollow: (reason) => logger.info({ job: job.name, reason }, 'this replica does not run the job'),
      })
    }
  }

  /**
   * Begins no run any more, waits for those under way (at most `limitMs`), then resigns, so that another replica
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
