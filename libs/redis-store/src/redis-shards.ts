/** The coordination port over a Redis Cluster: a backend for each shard, whose connections to one node are shared. */
import type { CoordinationBackend, ShardedBackend } from '@botmesh/core'
import { RedisBackend, type RedisBackendOptions } from './redis-backend.js'

export class RedisShards implements ShardedBackend {
  readonly shards: number
  private readonly backends: (RedisBackend | undefined)[] = []

  constructor(private readonly options: Omit<RedisBackendOptions, 'shard'>) {
    this.shards = options.place.shards
  }

  shardOf(key: string): number {
    return this.options.place.shardOf(key)
  }

  shard(index: number): CoordinationBackend {
    return (this.backends[index] ??= new RedisBackend({ ...this.options, shard: index }))
  }
}
