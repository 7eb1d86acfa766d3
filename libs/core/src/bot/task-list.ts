/** The bot's tasks: declared at any time, run from start to stop (J2). */
import type { Clock } from '../contracts/clock.js'
import { ConfigError } from '../contracts/errors.js'
import type { Logger } from '../contracts/logger.js'
import { describeValue } from '../kernel/duration.js'
import { refuseUnknownOptions } from '../kernel/options.js'
import { PlainTask, type Occurrences } from '../scheduler/tasks.js'
import type { Task, TaskHandler, TaskOptions } from './face.js'

export class TaskList {
  private readonly tasks = new Set<PlainTask>()
  private started = false

  constructor(
    private readonly options: { clock: Clock; logger: Logger; name: string },
    private readonly report: (error: unknown) => void,
  ) {}

  /** @throws ConfigError */
  add(when: Occurrences, given: TaskOptions | TaskHandler, fn: TaskHandler | undefined): Task {
    const options = typeof given === 'function' ? {} : given
    const run = typeof given === 'function' ? given : fn
    refuseUnknownOptions('A task', options, ['id', 'timeZone'])
    if (typeof run !== 'function') {
      throw new ConfigError(`The task is ${describeValue(run)}; accepted: a function.`, { option: 'task' })
    }
    if (options.id !== undefined) {
      const { logger, name } = this.options
      logger.warn(
        { bot: name, task: options.id },
        'this task has an id but the bot has no scheduler: it runs on every replica; use coordinator.tryLead to run it on one',
      )
    }
    const task = new PlainTask(this.options.clock, when, run, this.report)
    this.tasks.add(task)
    if (this.started) task.start()
    return {
      stop: () => {
        this.tasks.delete(task)
        void task.stop()
      },
    }
  }

  start(): void {
    this.started = true
    for (const task of this.tasks) task.start()
  }

  /** No further occurrence. Resolves when none is running. */
  async stop(): Promise<void> {
    this.started = false
    await Promise.all([...this.tasks].map((task) => task.stop()))
  }
}
