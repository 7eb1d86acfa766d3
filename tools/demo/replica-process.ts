/** A replica as a process of its own: killed, frozen and drained by signals. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { endWithMe } from '../servers/reaper.mjs'
import type { DemoReplica, OnEvent, ReplicaState } from './replica.js'
import { fromSource, shopScript } from './shop-script.js'

/** Longer than a replica tries an address that nobody answers at: then it says so itself. */
const START_MS = 45_000
const DRAIN_MS = 20_000

export class ReplicaProcess implements DemoReplica {
  state: ReplicaState = 'down'
  port = 0
  private child: ChildProcess | undefined
  private exited: Promise<void> = Promise.resolve()
  private output = ''

  constructor(
    readonly name: string,
    private readonly env: Record<string, string>,
    private readonly onEvent: OnEvent,
    private readonly onLine: (replica: string, line: string) => void,
  ) {}

  async start(): Promise<void> {
    await this.exited
    this.state = 'starting'
    this.output = ''
    const { NODE_OPTIONS: _, ...inherited } = process.env
    const loader = fromSource ? process.execArgv : []
    const child = spawn(process.execPath, ['--enable-source-maps', ...loader, fileURLToPath(shopScript)], {
      // A process group of its own: Ctrl-C in the terminal reaches the demo, which ends its replicas in order.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, ...this.env, PORT: '0', HOST: '127.0.0.1', REPLICA_ID: this.name },
    })
    this.child = child
    endWithMe(child)
    this.exited = new Promise((resolve) => {
      child.once('close', () => {
        this.state = 'down'
        resolve()
      })
    })
    await this.untilUp(child)
  }

  private untilUp(child: ChildProcess): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`Replica ${this.name} did not start.\n${this.output}`)),
        START_MS,
      )
      const end = () => {
        clearTimeout(timer)
        reject(new Error(`Replica ${this.name} ended at its start.\n${this.output}`))
      }
      child.once('error', reject)
      child.once('close', end)
      const listening = (port: number) => {
        clearTimeout(timer)
        child.off('close', end)
        this.port = port
        this.state = 'up'
        resolve()
      }
      child.stderr?.on('data', (data) => this.keep(String(data)))
      if (child.stdout !== null)
        createInterface(child.stdout).on('line', (line) => this.read(line, listening))
    })
  }

  async kill(): Promise<void> {
    this.child?.kill('SIGKILL')
    await this.exited
  }

  freeze(): boolean {
    this.child?.kill('SIGSTOP')
    this.state = 'frozen'
    return true
  }

  thaw(): void {
    this.child?.kill('SIGCONT')
    if (this.state === 'frozen') this.state = 'up'
  }

  async drain(): Promise<number> {
    if (this.state === 'down') return 0
    const start = performance.now()
    this.thaw()
    this.state = 'draining'
    this.child?.kill('SIGTERM')
    const timer = setTimeout(() => this.child?.kill('SIGKILL'), DRAIN_MS)
    await this.exited
    clearTimeout(timer)
    return Math.round(performance.now() - start)
  }

  private read(line: string, listening: (port: number) => void): void {
    this.keep(`${line}\n`)
    this.onLine(this.name, line)
    const event = parse(line)
    if (event === undefined) return
    if (event.event === 'listening' && typeof event.port === 'number') listening(event.port)
    this.onEvent({ ...event, replica: this.name })
  }

  private keep(text: string): void {
    this.output = (this.output + text).slice(-4000)
  }
}

function parse(line: string): { event: string; [field: string]: unknown } | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && 'event' in value && typeof value.event === 'string') {
      return value as { event: string }
    }
  } catch {
    // Not one of ours.
  }
  return undefined
}
