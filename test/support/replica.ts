/**
 * Replicas as real processes: a script that tells what happens to it as JSON lines on its standard output, each
 * with an `event` (see `replica-side.ts`), and that a test may kill, freeze and drain.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { endWithMe } from '../../tools/servers/reaper.mjs'
import { onTestEnd } from './test-end.js'

export interface ReplicaEvent {
  event: string
  [field: string]: unknown
}

export interface ReplicaExit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface NextOptions {
  /** Default 15 s, from when it is asked for, or from the first event: a process may take up to a minute to start. */
  timeoutMs?: number
  /** Only an event for which this returns true. */
  where?: (event: ReplicaEvent) => boolean
}

/** Of a process, until its first event: what it loads takes its time where many start at once. */
const START_MS = 60_000
const RUNNER = fileURLToPath(new URL('./run-source.mjs', import.meta.url))

/** A child process and what it has told so far. */
export class Replica {
  /** Every event so far, those returned by `next` included. */
  readonly events: ReplicaEvent[] = []
  readonly exited: Promise<ReplicaExit>
  private readonly taken = new Set<ReplicaEvent>()
  private readonly waiting = new Set<() => void>()
  private ended: ReplicaExit | undefined
  private output = ''
  /** When it told its first event. */
  private begunAt: number | undefined

  constructor(
    private readonly child: ChildProcess,
    private readonly name: string,
  ) {
    endWithMe(child)
    if (child.stdout !== null) createInterface(child.stdout).on('line', (text) => this.read(text))
    child.stderr?.on('data', (data) => this.keep(String(data)))
    child.stdin?.on('error', () => {}) // It ended: `exited` says so.
    this.exited = new Promise((resolve) => {
      child.once('error', (error) => this.keep(String(error)))
      child.once('close', (code, signal) => {
        this.ended = { code, signal }
        resolve(this.ended)
        this.wake()
      })
    })
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error(`${this.name} did not start: ${this.output}`)
    return this.child.pid
  }

  /** The end of what it printed beside events. */
  get log(): string {
    return this.output
  }

  /** All that it prints from now on, events included, as it stands there. */
  transcript(): { stdout: string; stderr: string } {
    const said = { stdout: '', stderr: '' }
    this.child.stdout?.on('data', (data) => (said.stdout += String(data)))
    this.child.stderr?.on('data', (data) => (said.stderr += String(data)))
    return said
  }

  /** The next event of this name that no earlier call has returned, whether it is here already or comes. */
  async next(
    name: string,
    { timeoutMs = 15_000, where = () => true }: NextOptions = {},
  ): Promise<ReplicaEvent> {
    const since = performance.now()
    for (let seen = 0; ;) {
      for (; seen < this.events.length; seen += 1) {
        const one = this.events[seen] as ReplicaEvent
        if (one.event !== name || this.taken.has(one) || !where(one)) continue
        this.taken.add(one)
        return one
      }
      if (this.ended !== undefined)
        throw this.failure(`ended (${JSON.stringify(this.ended)}) without "${name}"`)
      const leftMs = this.deadline(since, timeoutMs) - performance.now()
      if (leftMs <= 0) throw this.failure(`told no "${name}" within ${timeoutMs} ms`)
      await this.change(leftMs)
    }
  }

  private deadline(since: number, timeoutMs: number): number {
    const { begunAt } = this
    return begunAt === undefined
      ? since + Math.max(START_MS, timeoutMs)
      : Math.max(since, begunAt) + timeoutMs
  }

  /** Writes a JSON line to its standard input. */
  send(command: object): void {
    this.child.stdin?.write(`${JSON.stringify(command)}\n`)
  }

  /** SIGKILL. */
  async kill(): Promise<ReplicaExit> {
    if (this.ended === undefined) this.child.kill('SIGKILL')
    return this.exited
  }

  /** SIGSTOP. */
  pause(): void {
    this.child.kill('SIGSTOP')
  }

  /** SIGCONT. */
  resume(): void {
    this.child.kill('SIGCONT')
  }

  /** SIGTERM, and SIGKILL if it has not ended within `timeoutMs` (default 15 s; then it rejects). */
  async terminate(timeoutMs = 15_000): Promise<ReplicaExit> {
    if (this.ended !== undefined) return this.ended
    this.child.kill('SIGTERM')
    let late = false
    const timer = setTimeout(() => {
      late = true
      this.child.kill('SIGKILL')
    }, timeoutMs)
    const exit = await this.exited
    clearTimeout(timer)
    if (late) throw this.failure(`did not end within ${timeoutMs} ms of SIGTERM`)
    return exit
  }

  private read(text: string): void {
    const event = parseEvent(text)
    if (event === undefined) return this.keep(`${text}\n`)
    this.begunAt ??= performance.now()
    this.events.push(event)
    this.wake()
  }

  private keep(text: string): void {
    this.output = (this.output + text).slice(-8_000)
  }

  private wake(): void {
    for (const one of [...this.waiting]) one()
  }

  private change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.waiting.add(done)
    })
  }

  private failure(text: string): Error {
    const told = this.events
      .slice(-50)
      .map(({ event }) => event)
      .join(', ')
    return new Error(`Replica ${this.name} ${text}. It told (last): ${told || 'nothing'}.\n${this.output}`)
  }
}

/**
 * Starts a script as a process of its own. A TypeScript file runs from source, `@botmesh/*` included, so that no
 * build is needed; a JavaScript file runs as it is. It is killed when the spec file ends, if it still runs.
 * @param script path or `new URL('./fixtures/replica.ts', import.meta.url)`
 */
export function spawnReplica(script: string | URL, env: Record<string, string> = {}): Replica {
  const path = script instanceof URL ? fileURLToPath(script) : script
  const source = path.endsWith('.ts') ? [RUNNER] : []
  // Options for this process's Node, such as Jest's, are not meant for children.
  const { NODE_OPTIONS: _, ...inherited } = process.env
  const child = spawn(process.execPath, ['--enable-source-maps', ...source, path], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...inherited, ...env },
  })
  const replica = new Replica(child, path)
  onTestEnd(async () => void (await replica.kill()))
  return replica
}

function parseEvent(text: string): ReplicaEvent | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && 'event' in value && typeof value.event === 'string'
      ? (value as ReplicaEvent)
      : undefined
  } catch {
    return undefined
  }
}
