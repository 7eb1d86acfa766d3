/**
 * A store of one's own: a JSON file per chat and per user in a folder. It has what a store must have (checkpoints,
 * users) and the two conditional writes that replicas need (K2). The rest (journal, outbox, one-trip commits) it leaves
 * out, and the bot says at start what is missing.
 *
 * Comparing and writing must be one step for all who write: here one process, whose writes to a file are queued. A
 * store for several processes does the same in one statement of its database.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock, systemRandom, type Clock, type FlowCheckpoint, type Store } from '@botmesh/core'
import type { UserRecord } from '@botmesh/core'

interface ChatRow {
  /** Highest fence that has written. Stays when the checkpoint goes: it is the tombstone. */
  fence: number
  /** Of the last write, removals included; null before the first one. */
  revision: string | null
  checkpoint: FlowCheckpoint | null
  /** Of an ephemeral checkpoint. */
  expiresAt: number | null
}

const EMPTY: ChatRow = { fence: 0, revision: null, checkpoint: null, expiresAt: null }

export class FileStore implements Store {
  readonly kind = 'file'
  /** Other replicas do not see this folder. */
  readonly shared = false
  private readonly queues = new Map<string, Promise<unknown>>()

  constructor(
    private readonly folder: string,
    private readonly clock: Clock = systemClock,
  ) {}

  async open(): Promise<void> {
    await mkdir(this.folder, { recursive: true })
  }

  async getCheckpoint(key: string): Promise<FlowCheckpoint | null> {
    return this.present(await this.row(key))
  }

  async setCheckpoint(key: string, checkpoint: FlowCheckpoint): Promise<void> {
    await this.change(key, (row) => this.written(row.fence, checkpoint))
  }

  async clearCheckpoint(key: string): Promise<void> {
    await this.change(key, (row) => ({ ...row, checkpoint: null }))
  }

  setCheckpointIf(key: string, checkpoint: FlowCheckpoint, expected: string | null, fence: number) {
    return this.change(key, (row) => {
      if (row.checkpoint?.revision === checkpoint.revision) return row // Sent again: its own write is here.
      return this.isExpected(row, expected, fence) ? this.written(fence, checkpoint) : null
    })
  }

  clearCheckpointIf(key: string, expected: string | null, fence: number) {
    return this.change(key, (row) => {
      const tombstone = `${fence}:cleared:${expected}`
      if (row.revision === tombstone) return row
      if (!this.isExpected(row, expected, fence)) return null
      return { fence, revision: tombstone, checkpoint: null, expiresAt: null }
    })
  }

  async getUser(userId: string): Promise<UserRecord | null> {
    return this.readJson<UserRecord | null>(this.pathOf('user', userId), null)
  }

  setUserIf(userId: string, data: Record<string, unknown>, expected: string | null): Promise<string | null> {
    const path = this.pathOf('user', userId)
    return this.alone(path, async () => {
      const before = await this.readJson<UserRecord | null>(path, null)
      if ((before?.revision ?? null) !== expected) return null
      const revision = systemRandom.uuid()
      await this.writeJson(path, { data, revision })
      return revision
    })
  }

  /** Null is expected where there is nothing: never written, cleared, or expired. */
  private isExpected(row: ChatRow, expected: string | null, fence: number): boolean {
    return fence >= row.fence && (this.present(row)?.revision ?? null) === expected
  }

  private present({ checkpoint, expiresAt }: ChatRow): FlowCheckpoint | null {
    return expiresAt !== null && expiresAt <= this.clock.now() ? null : checkpoint
  }

  private written(fence: number, checkpoint: FlowCheckpoint): ChatRow {
    const { ephemeral = false, ttlMs, revision } = checkpoint
    const expiresAt = ephemeral && ttlMs !== undefined ? this.clock.now() + ttlMs : null
    return { fence, revision, checkpoint, expiresAt }
  }

  /** @returns false if `decide` refuses with null. */
  private change(key: string, decide: (row: ChatRow) => ChatRow | null): Promise<boolean> {
    const path = this.pathOf('chat', key)
    return this.alone(path, async () => {
      const next = decide(await this.row(key))
      if (next !== null) await this.writeJson(path, next)
      return next !== null
    })
  }

  private row(key: string): Promise<ChatRow> {
    return this.readJson<ChatRow>(this.pathOf('chat', key), EMPTY)
  }

  private pathOf(kind: 'chat' | 'user', name: string): string {
    return join(this.folder, `${kind}-${encodeURIComponent(name)}.json`)
  }

  private async readJson<T>(path: string, absent: T): Promise<T> {
    try {
      return JSON.parse(await readFile(path, 'utf8')) as T
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return absent
      throw error
    }
  }

  /** Whole or not at all: a crash in between leaves the file as it was. */
  private async writeJson(path: string, value: object): Promise<void> {
    const draft = `${path}.${systemRandom.uuid()}`
    await writeFile(draft, JSON.stringify(value))
    await rename(draft, path)
  }

  private alone<T>(path: string, work: () => Promise<T>): Promise<T> {
    const result = (this.queues.get(path) ?? Promise.resolve()).then(work)
    const settled = result.catch(() => undefined)
    this.queues.set(path, settled)
    void settled.then(() => this.queues.get(path) === settled && this.queues.delete(path))
    return result
  }
}
