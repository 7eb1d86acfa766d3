/** The bot's tasks: declared at any time, run from start to stop; those with an id by the scheduler (J1, J2). */
import type { Clock, Random } from '../contracts/clock.js'
import type { Coordinator } from '../contracts/coordinator.js'
import { ConfigError, LeaseLostError } from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import type { Store } from '../contracts/store.js'
import { describeValue } from '../kernel/duration.js'
import { runInScope } from '../runtime/act-scope.js'
import { beginUse, endUse, isIdle } from '../runtime/shared-use.js'
import type { Occurrences } from '../scheduler/occurrences.js'
import { checkTaskOptions, resolvePolicy, type ResolvedScheduler } from '../scheduler/options.js'
import { Scheduler } from '../scheduler/scheduler.js'
import { TaskContext } from '../scheduler/task-context.js'
import type { TaskStore } from '../scheduler/task-row.js'
import { PlainTask } from '../scheduler/tasks.js'
import type { EventHub } from './events.js'
import type { Task, TaskHandler, TaskOptions } from './face.js'

export interface TaskListOptions {
  name: string
  clock: Clock
  random: Random
  logger: Logger
  store: Store
  coordinator: Coordinator | null
  scheduler: ResolvedScheduler | null
  drainMs: number
}

/** Of `drainMs`: before the drain goes on without them, tasks have ended and the leadership is resigned. */
const STOP_SHARE = 0.7

export class TaskList {
  private readonly plain = new Set<PlainTask>()
  private readonly scheduler: Scheduler | null
  private started = false
  private stopped = new AbortController()

  constructor(
    private readonly options: TaskListOptions,
    private readonly events: EventHub,
  ) {
    this.scheduler = options.scheduler === null ? null : this.makeScheduler(options.scheduler)
  }

  /** @throws ConfigError */
  add(when: Occurrences, given: TaskOptions | TaskHandler, fn: TaskHandler | undefined): Task {
    const options = typeof given === 'function' ? {} : given
    const run = typeof given === 'function' ? given : fn
    checkTaskOptions(options)
    if (typeof run !== 'function') {
      throw new ConfigError(`The task is ${describeValue(run)}; accepted: a function.`, { option: 'task' })
    }
    const { scheduler } = this.options
    const { id } = options
    if (id === undefined || this.scheduler === null || scheduler === null) return this.addPlain(when, id, run)
    const policy = resolvePolicy('', options, scheduler.policy)
    return { stop: this.scheduler.add({ id, when, policy, fn: run }) }
  }

  start(): void {
    this.started = true
    this.stopped = new AbortController()
    for (const task of this.plain) task.start()
    const own = this.ownCoordinator
    if (own !== null) beginUse(own, isIdle(own))
    this.scheduler?.start()
  }

  /** No further occurrence. Resolves when none is running, or `drainMs` is nearly over. */
  async stop(): Promise<void> {
    const { started } = this
    this.started = false
    this.stopped.abort(new LeaseLostError(this.options.name, 'stopped'))
    await Promise.all([...[...this.plain].map((task) => task.stop()), this.scheduler?.stop()])
    const own = this.ownCoordinator
    if (!started || own === null) return
    await endUse(own, () => own.stop()).catch((error: unknown) => this.events.error(error))
  }

  /** A coordinator of the scheduler alone: nobody else begins or ends its session. */
  private get ownCoordinator(): Coordinator | null {
    const { scheduler, coordinator } = this.options
    if (scheduler?.lease.kind !== 'coordinator') return null
    return scheduler.lease.coordinator === coordinator ? null : scheduler.lease.coordinator
  }

  private addPlain(when: Occurrences, id: string | undefined, run: TaskHandler): Task {
    const { clock, logger, name } = this.options
    if (id !== undefined) {
      logger.warn(
        { bot: name, task: id },
        'this task has an id but the bot has no scheduler: it runs on every replica; set scheduler: true in the bot to run it on one',
      )
    }
    const work = () => {
      const { signal } = this.stopped
      return run(
        new TaskContext({
          ...{ id: id ?? null, occurrence: clock.now(), attempt: 1, fence: null, signal },
          assertHeld: () => signal.throwIfAborted(),
        }),
      )
    }
    const task = new PlainTask(clock, when, work, (error) => this.events.error(error))
    this.plain.add(task)
    if (this.started) task.start()
    return {
      stop: () => {
        this.plain.delete(task)
        void task.stop()
      },
    }
  }

  private makeScheduler(scheduler: ResolvedScheduler): Scheduler {
    const { clock, random, logger, store, drainMs } = this.options
    return new Scheduler(scheduler, {
      clock,
      random,
      logger,
      // Checked with the options: it has setCheckpointIf.
      store: store as TaskStore,
      stopMs: drainMs * STOP_SHARE,
      runIn: (assertHeld, fn) => runInScope(actOf(assertHeld), fn),
      report: (error) => this.events.error(error),
      missed: (missed) => this.events.emit('task:missed', missed),
      lost: (key, { reason }) => this.events.emit('coordination:lease-lost', { key, reason }),
    })
  }
}

/** What the task does through the bot is refused once it may no longer act; asked anew each time (L2). */
function actOf(assertHeld: () => void) {
  return {
    current: null,
    get revoked(): LeaseLostError | null {
      try {
        assertHeld()
        return null
      } catch (error) {
        if (error instanceof LeaseLostError) return error
        throw error
      }
    },
  }
}
