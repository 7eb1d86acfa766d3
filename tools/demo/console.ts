/** The interactive part: what is printed and which keys do what. Works without a terminal too (then no keys). */
import type { Mesh } from './mesh.js'
import { readableKey } from './readable-key.js'
import type { DemoReplica, ReplicaEvent } from './replica.js'

const KEYS = `
  1 2 3  choose a, b or c      k  kill it (SIGKILL)       f  freeze it, or thaw it (SIGSTOP, SIGCONT)
  l      choose the leader     d  drain it (as a deploy)  s  start it again
  h      this help             q  quit`

export class DemoConsole {
  private chosen: DemoReplica
  /** The replica that did the leader-only job last. */
  private leader: string | undefined

  constructor(
    private readonly mesh: Mesh,
    private readonly print: (line: string) => void,
    private readonly quit: () => void,
  ) {
    const [first] = mesh.replicas
    if (first === undefined) throw new Error('The demo needs a replica.')
    this.chosen = first
  }

  greet(where: string): void {
    const { url } = this.mesh.balancer
    this.print(`\n  Tienda Aurora: three replicas, ${where}\n`)
    this.print(`  Web chat  ${url}/chat      write "pedido", "order", "encuesta" or "survey"`)
    this.print(`  Health    ${url}/health    one replica after the other`)
    for (const { name, port } of this.mesh.replicas)
      this.print(`            http://127.0.0.1:${port}/health    replica ${name}`)
    this.print(
      process.stdin.isTTY ? KEYS : `\n  No terminal: no keys; SIGTERM to process ${process.pid} ends it.`,
    )
    this.print('')
  }

  /** Tells what a replica did, in a line. */
  show(event: ReplicaEvent): void {
    if (event.event === 'stock-report') this.leader = event.replica
    const line = describe(event)
    if (line !== undefined) this.print(`  [${event.replica}] ${line}`)
  }

  listen(): void {
    const { stdin } = process
    if (!stdin.isTTY) return
    stdin.setRawMode(true)
    stdin.setEncoding('utf8')
    stdin.resume()
    stdin.on('data', (pressed: string) => {
      // Several keys may come at once; what begins with ESC is one key that is none of ours, such as an arrow.
      for (const key of pressed.startsWith('\u001b') ? [] : pressed)
        this.press(key).catch((error: unknown) =>
          this.print(`  ${error instanceof Error ? error.message : String(error)}`),
        )
    })
  }

  async press(key: string): Promise<void> {
    if (key === 'q' || key === '\u0003') return this.quit()
    if (key === 'h') return this.print(KEYS)
    if (key === 'l') {
      const leader = this.mesh.replicas.find((one) => one.name === this.leader)
      return leader === undefined
        ? this.print('  Which one leads shows in a few seconds.')
        : this.choose(leader)
    }
    const numbered = this.mesh.replicas[Number(key) - 1]
    if (numbered !== undefined) return this.choose(numbered)
    const { chosen } = this
    if ((key === 'k' || key === 'd') && (chosen.state === 'down' || chosen.state === 'starting'))
      return this.print(`  ${chosen.name} is ${chosen.state}`)
    if (key === 'k') {
      this.print(`  ${chosen.name} is killed`)
      return this.mesh.kill(chosen)
    }
    if (key === 'f') return this.freezeOrThaw(chosen)
    if (key === 'd') {
      this.print(`  ${chosen.name} drains`)
      this.print(`  ${chosen.name} drained in ${await this.mesh.drain(chosen)} ms`)
      return
    }
    if (key === 's') {
      if (chosen.state !== 'down') return this.print(`  ${chosen.name} is ${chosen.state}`)
      this.print(`  ${chosen.name} starts`)
      await this.mesh.begin(chosen)
      this.print(`  ${chosen.name} is up again: http://127.0.0.1:${chosen.port}/health`)
    }
  }

  private choose(replica: DemoReplica): void {
    this.chosen = replica
    this.print(
      `  ${replica.name} is chosen${replica.name === this.leader ? ' (it leads)' : ''}; it is ${replica.state}`,
    )
  }

  private freezeOrThaw(replica: DemoReplica): void {
    if (replica.state === 'frozen') {
      replica.thaw()
      return this.print(`  ${replica.name} goes on`)
    }
    if (replica.state !== 'up') return this.print(`  ${replica.name} is ${replica.state}`)
    this.print(
      replica.freeze()
        ? `  ${replica.name} is frozen; press f again to let it go on`
        : '  In one process no replica can be frozen alone: this takes Redis.',
    )
  }
}

function describe(event: ReplicaEvent): string | undefined {
  const text = (name: string) => {
    const value = event[name]
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '-'
  }
  switch (event.event) {
    case 'handled':
      return `${readableKey(text('chat'))}  message ${text('messageId')}  fence ${text('fence')}  before: ${text('previousHolder')}`
    case 'handover':
      return `${readableKey(text('chat'))}  conversation "${text('conversation')}" ${text('outcome')}`
    case 'lease-lost':
      return `${readableKey(text('key'))}  lost: ${text('reason')}`
    case 'stock-report':
      return `leads; sold so far: ${text('orders')} orders, ${text('pieces')} pieces`
    case 'error':
      return `error: ${typeof event.err === 'object' && event.err !== null && 'message' in event.err ? String(event.err.message) : '?'}`
    default:
      return undefined
  }
}
