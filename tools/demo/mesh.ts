/** The replicas of the demo and the balancer before them. */
import { startBalancer } from './balancer.mjs'
import type { DemoReplica } from './replica.js'

export type Balancer = Awaited<ReturnType<typeof startBalancer>>

export class Mesh {
  constructor(
    readonly replicas: readonly DemoReplica[],
    readonly balancer: Balancer,
  ) {}

  get up(): DemoReplica[] {
    return this.replicas.filter((one) => one.state === 'up')
  }

  find(name: string): DemoReplica {
    const found = this.replicas.find((one) => one.name === name)
    if (found === undefined) throw new Error(`There is no replica ${name}.`)
    return found
  }

  async start(): Promise<void> {
    await Promise.all(this.replicas.map((one) => this.begin(one)))
  }

  /** Starts one, again if it was down. */
  async begin(replica: DemoReplica): Promise<void> {
    await replica.start()
    this.balancer.add({ name: replica.name, port: replica.port })
  }

  /** The balancer notices by itself: connections are refused. */
  async kill(replica: DemoReplica): Promise<void> {
    await replica.kill()
    this.balancer.remove(replica.name)
  }

  /** A balancer takes a replica out before a deploy stops it. */
  async drain(replica: DemoReplica): Promise<number> {
    this.balancer.remove(replica.name)
    return replica.drain()
  }

  async stop(): Promise<void> {
    await Promise.all(this.replicas.filter((one) => one.state !== 'down').map((one) => one.drain()))
    await this.balancer.stop()
  }
}
