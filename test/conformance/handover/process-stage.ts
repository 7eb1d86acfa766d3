/**
 * Replicas of cells as real processes on a real Redis: killed by SIGKILL, stopped by SIGTERM, frozen by SIGSTOP. A
 * process plays one replica of many cells, and an accident that it meets is met by all of them at once: so cells of one
 * accident make up a troupe, and its accident waits until the last of its cells has come to its moment.
 */
import { Redis } from 'ioredis'
import { setTimeout as delay } from 'node:timers/promises'
import { spawnReplica, type Replica as Process } from '../../support/index.js'
import type { HandoverEvent, Stored } from './bed.js'
import type { Cell } from './matrix.js'
import type { Stage, StageReplica } from './run-cell.js'

const SCRIPT = new URL('./handover-replica.ts', import.meta.url)
const LOOK_MS = 10
const START_MS = 60_000

interface Part {
  prefix: string
  cell: Cell
}

/** All cells of one accident, on two processes. */
export class Troupe {
  readonly a: Process
  readonly b: Process
  private readonly arrived = new Set<string>()
  private meet: () => void = () => undefined
  private readonly met = new Promise<void>((resolve) => (this.meet = resolve))
  private accident: Promise<void> | null = null

  constructor(
    private readonly url: string,
    readonly leaseMs: number,
    private readonly parts: readonly Part[],
    private readonly admin: Redis,
  ) {
    this.a = this.spawn('a')
    this.b = this.spawn('b')
  }

  async start(): Promise<void> {
    await Promise.all([this.a, this.b].map((one) => one.next('started', { timeoutMs: START_MS })))
  }

  stageOf(part: Part): Stage {
    const { a, b, leaseMs, admin } = this
    const told = (event: string, of: Process) =>
      of.events.filter((one) => one.event === event && one['prefix'] === part.prefix)
    const replica = (of: Process): StageReplica => ({
      receive: async (message) => of.send({ do: 'receive', prefix: part.prefix, message }),
      kill: () => this.once(part, async () => void (await of.kill())),
      freeze: () => this.once(part, async () => of.pause()),
      stop: () => this.once(part, async () => void (await of.terminate())),
      // Whoever comes first thaws it for all; they come within milliseconds.
      thaw: () => of.resume(),
      get wasCut() {
        return told('lost', of).some((one) => one['reason'] === 'settled')
      },
      hasHandled: (id) => told('handled', of).some((one) => one['id'] === id),
      get handovers() {
        return told('handover', of) as unknown as HandoverEvent[]
      },
      get unexpected() {
        return told('error', of).map((one) => String(one['error']))
      },
    })
    return {
      leaseMs,
      replica: async (name) => replica(name === 'a' ? a : b),
      heldUp: () => told('held-up', a).length > 0,
      letGo: () => a.send({ do: 'let-go', prefix: part.prefix }),
      pass: (leases) => delay(leases * leaseMs),
      until: async (condition, leases) => {
        const end = performance.now() + leases * leaseMs
        while (!condition() && performance.now() < end) await delay(LOOK_MS)
      },
      get said() {
        // By the time they were said: the two of them are read from two pipes.
        const all = [...told('sent', a), ...told('sent', b)]
        return all.sort((x, y) => Number(x['at']) - Number(y['at'])).map((one) => String(one['text']))
      },
      stored: async (chatKey): Promise<Stored> => {
        const [checkpoint, marker] = await admin.hmget(`${part.prefix}:{0}:c:${chatKey}`, 'c', 'm')
        return typeof checkpoint === 'string' ? 'checkpoint' : typeof marker === 'string' ? 'marker' : 'none'
      },
    }
  }

  /** A cell that failed on its way: the others need not wait for it. */
  giveUp(part: Part): void {
    this.arrived.add(part.prefix)
    if (this.arrived.size >= this.parts.length) this.meet()
  }

  /** Ends what still runs, in order. @returns exits that were not in order. */
  async end(): Promise<string[]> {
    const exits = await Promise.all(
      [this.a, this.b].map(async (one) => {
        const { code, signal } = await one.terminate()
        return code === 0 || signal === 'SIGKILL' ? '' : `${code ?? signal}: ${one.log}`
      }),
    )
    return exits.filter((exit) => exit !== '')
  }

  /** Waits for all cells, then does it, once. */
  private once(part: Part, happen: () => Promise<void>): Promise<void> {
    this.accident ??= this.met.then(happen)
    this.giveUp(part)
    return this.accident
  }

  private spawn(role: 'a' | 'b'): Process {
    return spawnReplica(SCRIPT, {
      REDIS_URL: this.url,
      LEASE_MS: String(this.leaseMs),
      ROLE: role,
      PARTS: JSON.stringify(this.parts),
    })
  }
}
