/**
 * Names of a coordinator's sessions where its chats are spread over several shards (docs/architecture/redis-topologies.md): each
 * shard has a session of its own, and all of them belong to one incarnation, which is what turns name as their previous
 * holder (T7). The loss of a session begins a new incarnation (C3); sessions of other shards that still live keep the
 * name they have.
 */
import type { Random } from '../contracts/clock.js'
import { incarnationOf, shardSession } from './coordination-backend.js'

/** C3: a nonce behind the replica's name. */
export function freshIncarnation({ replicaId, random }: { replicaId: string; random: Random }): string {
  return `${replicaId}~${random.uuid().replaceAll('-', '').slice(0, 12)}`
}

export class ShardNames {
  private current: string
  private epoch = 0

  constructor(
    private readonly replicaId: string,
    private readonly random: Random,
  ) {
    this.current = this.fresh()
  }

  get incarnation(): string {
    return this.current
  }

  /** A name that no other attempt had. */
  session(shard: number): string {
    this.epoch += 1
    return shardSession(this.current, shard, this.epoch)
  }

  /** Sessions that are lost together, as in a restart of the backend, end one incarnation, not one each. */
  lost(session: string): void {
    if (incarnationOf(session) === this.current) this.renew()
  }

  renew(): void {
    this.current = this.fresh()
  }

  private fresh(): string {
    const { replicaId, random } = this
    return freshIncarnation({ replicaId, random })
  }
}
