/** The store's calls, a set for each shard: whoever calls for a name is led to the shard that the name belongs to. */
import type { ShardedPlace } from './layout.js'
import { StoreCalls, type StoreCallsOptions } from './store-calls.js'

export class StoreShards {
  private readonly shards: (StoreCalls | undefined)[]

  constructor(
    readonly place: ShardedPlace,
    readonly options: Omit<StoreCallsOptions, 'place' | 'keys'>,
  ) {
    this.shards = place.keys.map(() => undefined)
  }

  /** @param name a chat key, a user id, the name of a lock or of a log. */
  of(name: string): StoreCalls {
    return this.at(this.place.shardOf(name))
  }

  all(): StoreCalls[] {
    return this.place.keys.map((_, shard) => this.at(shard))
  }

  /** Idempotent. Of a cluster, one node is enough; others are connected to when something of theirs is asked for. */
  async open(): Promise<void> {
    await this.at(0).open()
  }

  close(): void {
    for (const calls of this.shards) calls?.close()
  }

  private at(shard: number): StoreCalls {
    const { place, options } = this
    const keys = place.keys[shard]
    if (!keys) throw new RangeError(`There is no shard ${shard}.`)
    return (this.shards[shard] ??= new StoreCalls({ ...options, place, keys }))
  }
}
