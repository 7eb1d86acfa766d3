/**
 * The layout of keys: which shard a name belongs to, and the lines to it. With layout 'single' there is one shard on one
 * server; with 'cluster' a fixed number of them, spread over the masters of a Redis Cluster (ADR 6).
 */
import type { TakeRequest } from '@botmesh/core'
import type { LineContext, LineOptions, Lines, Line } from './line.js'
import { ClusterLines } from './cluster-lines.js'
import { shardOf, shardTags } from './cluster-slots.js'
import { MESH_TAG, ShardKeys } from './keys.js'
import { joinMesh, type Layout } from './mesh.js'
import { RedisLink } from './redis-link.js'
import type { Target } from './redis-target.js'

/** What options say of where the data is. */
export interface PlaceSettings extends Layout {
  readonly target: Target
  readonly prefix: string
  readonly windowMs: number
}

/** Shards of one owner: its lines share connections. */
export class ShardedPlace {
  readonly keys: readonly ShardKeys[]
  private readonly meshKeys: ShardKeys
  private readonly checked = new Set<string>()
  private lines: { context: LineContext; lines: Lines } | null = null
  private joining: Promise<void> | null = null

  constructor(readonly settings: PlaceSettings) {
    const { prefix, layout, shards } = settings
    const tags = layout === 'single' ? [MESH_TAG] : shardTags(shards)
    this.keys = tags.map((tag) => new ShardKeys(prefix, tag))
    this.meshKeys = new ShardKeys(prefix)
  }

  get shards(): number {
    return this.keys.length
  }

  get sharded(): boolean {
    return this.settings.layout === 'cluster'
  }

  shardOf(name: string): number {
    return this.keys.length === 1 ? 0 : shardOf(name, this.keys.length)
  }

  /** A chat's read brings its user's state along where it is in the same shard. */
  within(request: TakeRequest): TakeRequest {
    const { key, read } = request
    if (read?.user === undefined || this.shardOf(read.user) === this.shardOf(key)) return request
    const { user: _elsewhere, ...rest } = read
    return { ...request, read: rest }
  }

  line(context: LineContext, options: LineOptions): Line {
    const { target } = this.settings
    if (target.kind === 'server') return new RedisLink({ target, ...context, ...options })
    this.lines ??= { context, lines: new ClusterLines(target, context) }
    return this.lines.lines.line(options)
  }

  /**
   * Before anything is done in a shard: the server is fit, and the mesh is laid out as we are told (Z11).
   * @param line an open one to that shard.
   */
  async join(line: Line, keys: ShardKeys, timeoutMs: number, context: LineContext): Promise<void> {
    const { layout, shards, windowMs } = this.settings
    const settings = { layout, shards, windowMs, checked: this.checked }
    if (this.sharded) {
      this.joining ??= this.joinRecord(timeoutMs, context).catch((error: unknown) => {
        this.joining = null
        throw error
      })
      await this.joining
    }
    await joinMesh(line, { ...settings, keys }, timeoutMs, context.logger)
  }

  /** The record that all layouts and shard counts share, in its own slot. */
  private async joinRecord(timeoutMs: number, context: LineContext): Promise<void> {
    const { layout, shards, windowMs } = this.settings
    const keys = this.meshKeys
    const line = this.line(context, { role: 'store', slot: keys.slot })
    try {
      await line.open(timeoutMs)
      const settings = { layout, shards, windowMs, keys, checked: this.checked }
      await joinMesh(line, settings, timeoutMs, context.logger)
    } finally {
      line.close()
    }
  }
}
