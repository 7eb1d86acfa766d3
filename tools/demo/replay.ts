/**
 * `npm run demo -- --replay`: recorded webhook bodies of WhatsApp and Telegram go through the balancer to three
 * replicas with durability on, while one of them is killed in the middle of an order and another is frozen for
 * longer than its lease. Ends with a summary; 0 only if nothing was lost, doubled or out of order.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { DemoBackend } from './backend.js'
import type { Mesh } from './mesh.js'
import type { DemoReplica, OnEvent, ReplicaEvent } from './replica.js'
import { People } from './replay/people.js'
import { Platforms } from './replay/platforms.js'
import { readStory } from './replay/story.js'
import { findingsOf, isClean, renderFindings, type HandledEvent } from './replay/summary.js'
import type { DemoSettings } from './settings.mjs'

export type StartMesh = (
  settings: DemoSettings,
  backend: DemoBackend,
  extra: Record<string, string>,
  onEvent: OnEvent,
) => Promise<Mesh>

export interface ReplayRun {
  settings: DemoSettings
  backend: DemoBackend
  start: StartMesh
  print: (line: string) => void
}

const PATIENCE_MS = 30_000
/** Late copies and doubled answers would arrive within this. */
const AFTERMATH_MS = 1500

export async function replay({ settings, backend, start, print }: ReplayRun): Promise<number> {
  const story = await readStory()
  const platforms = new Platforms()
  await platforms.listen()
  const events: ReplicaEvent[] = []
  const started = performance.now()
  let mesh: Mesh | undefined
  try {
    mesh = await start(settings, backend, { DURABILITY: '1', ...platforms.env }, (event) =>
      events.push(event),
    )
    print(`  ${story.length} webhook bodies, three replicas: ${backend.what}`)
    const people = new People(platforms, mesh.balancer.url, PATIENCE_MS)
    const director = new Director(mesh, people, events, settings.leaseMs, print)
    let delivered = 0
    await people.tell(story, () => director.notice(++delivered / story.length))
    await director.finish()
    await pause(AFTERMATH_MS)
    const findings = findingsOf({
      messages: people.messages,
      redelivered: platforms.redelivered,
      expectations: people.expectations,
      repliesOf: (chat) => platforms.repliesOf(chat),
      handled: events.filter(isHandled),
      handovers: events
        .filter((one) => one.event === 'handover')
        .map((one) => ({ outcome: String(one.outcome) })),
    })
    const clean = isClean(findings, people.complaints) && director.didEverything
    for (const line of renderFindings(findings, people.complaints, clean)) print(line)
    print(`  ${((performance.now() - started) / 1000).toFixed(1)} s`)
    return clean ? 0 : 1
  } finally {
    await mesh?.stop()
    await platforms.close()
  }
}

/** Makes the accidents happen at their time. */
class Director {
  private acts: Promise<void> = Promise.resolve()
  private readonly left: { at: number; act: () => Promise<void> }[]
  private failed = false

  constructor(
    private readonly mesh: Mesh,
    private readonly people: People,
    private readonly events: readonly ReplicaEvent[],
    private readonly leaseMs: number,
    private readonly print: (line: string) => void,
  ) {
    this.left = [
      { at: 0.25, act: () => this.killOne() },
      { at: 0.55, act: () => this.freezeOne() },
    ]
  }

  get didEverything(): boolean {
    return this.left.length === 0 && !this.failed
  }

  notice(share: number): void {
    const [next] = this.left
    if (next === undefined || share < next.at) return
    this.left.shift()
    this.acts = this.acts.then(next.act).catch((error: unknown) => {
      this.failed = true
      this.print(`  ${error instanceof Error ? error.message : String(error)}`)
    })
  }

  finish(): Promise<void> {
    return this.acts
  }

  /** The replica that served an order which goes on: its next message finds another one. */
  private async killOne(): Promise<void> {
    await this.people.inSilence(async () => {
      const victim = this.lastServer()
      await this.mesh.kill(victim)
      this.print(`  ${victim.name} was killed in the middle of an order (SIGKILL, nothing released)`)
    })
  }

  private async freezeOne(): Promise<void> {
    const frozen = this.lastServer()
    const ms = Math.round(this.leaseMs * 1.5)
    let done = false
    await this.people.inSilence(() => {
      done = frozen.freeze()
    })
    if (!done) return this.print('  In one process no replica can be frozen alone: left out.')
    this.print(`  ${frozen.name} is frozen for ${ms} ms, its lease is ${this.leaseMs} ms (SIGSTOP)`)
    await pause(ms)
    frozen.thaw()
    this.print(`  ${frozen.name} goes on (SIGCONT)`)
  }

  private lastServer(): DemoReplica {
    const last = this.events.findLast((one) => isHandled(one) && this.mesh.find(one.replica).state === 'up')
    return last === undefined ? (this.mesh.up[0] as DemoReplica) : this.mesh.find(last.replica)
  }
}

function isHandled(event: ReplicaEvent): event is ReplicaEvent & HandledEvent {
  return event.event === 'handled' && typeof event.chat === 'string' && typeof event.fence === 'number'
}
