/**
 * A session in the bot's store: no volume to share between replicas (Z9). See session-pages.ts for how it lies there.
 *
 * Opening it raises the fence of the head, then writes it anew; from then on the store refuses every write of a former
 * leader, whose next batch ends with a `LeaseLostError`. The leader keeps all records in memory and reads the store
 * only once. A batch whose fate is unknown (lost reply) is settled before the next one, by repeating it as it was: no
 * slot that a head may name is ever written. What could not be written goes with the next batch.
 */
import { ConfigError, StoreError } from '@botmesh/core'
import { fileNameOf } from './folder-files.js'
import { readSessionFolder } from './folder-storage.js'
import { inParallel } from './in-parallel.js'
import { nextWrite, readHead, readPage, type SessionHead } from './session-pages.js'
import {
  requireFences,
  SessionRows,
  type FoundRow,
  type SessionStore,
  type SessionTime,
} from './session-rows.js'
import type { SessionRecords, SessionStorage } from './session-storage.js'
import { WriteBatches } from './write-batches.js'

export class StoreStorage implements SessionStorage {
  /**
   * @param options.importFrom a folder of sessions: one that the store has never seen is taken over from there at its
   *   first opening. The files stay as they are. `options.clock` and `options.random`: for tests.
   * @throws ConfigError for a store without `setCheckpointIf`.
   */
  constructor(
    private readonly store: SessionStore,
    private readonly options: { importFrom?: string } & SessionTime = {},
  ) {
    requireFences(store)
  }

  /** @throws LeaseLostError if a later leader has opened it. StoreError if the store fails, or the head is damaged. */
  async open(session: string, fence?: number): Promise<SessionRecords> {
    const rows = new SessionRows(this.store, session, fence, this.options)
    await rows.claim('head')
    const headOver = (row: FoundRow | null): SessionHead => {
      const head = row === null ? { pages: {}, tail: {} } : readHead(row.state)
      if (head === null) throw damagedHead(this.store.kind, session)
      return head
    }
    const { found, state, revision } = await rows.replace('head', () => rows.read('head'), headOver)
    const records = await StoreRecords.load(rows, state, revision)
    const { importFrom } = this.options
    if (found === null && importFrom !== undefined) {
      await records.write(await readSessionFolder(importFrom, session))
    }
    return records
  }
}

class StoreRecords implements SessionRecords {
  readonly damaged: string[] = []
  /** As the store has it. */
  private readonly stored = new Map<string, string>()
  private readonly batches = new WriteBatches((changes) => this.run(changes))
  /** Changes that the store does not have for certain. */
  private readonly dirty = new Map<string, string | null>()
  /** A head whose fate is unknown, and the changes that it brings. */
  private pending: { head: SessionHead; revision: string; changes: Map<string, string | null> } | undefined

  private constructor(
    private readonly rows: SessionRows,
    private head: SessionHead,
    private revision: string,
  ) {}

  static async load(rows: SessionRows, head: SessionHead, revision: string): Promise<StoreRecords> {
    const loaded = new StoreRecords(rows, head, revision)
    await inParallel(Object.entries(head.pages), async ([page, slot]) => {
      const found = await rows.readOrDamaged(`${page}${slot}`)
      const content = found === null || found === 'damaged' ? null : readPage(found.state)
      if (content === null) loaded.damaged.push(`page ${page}`)
      for (const [name, text] of Object.entries(content ?? {})) loaded.stored.set(name, text)
    })
    loaded.apply(new Map(Object.entries(head.tail)))
    return loaded
  }

  async read(names: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    for (const name of names) {
      const text = this.newest(fileNameOf(name))
      if (typeof text === 'string') found.set(name, text)
    }
    return found
  }

  write(changes: ReadonlyMap<string, string | null>): Promise<void> {
    // Under the names that files have, so that a folder can be taken over whole.
    return this.batches.write(new Map([...changes].map(([name, text]) => [fileNameOf(name), text])))
  }

  /** WhatsApp has revoked the keys: nothing is kept of them, unlike a folder does. */
  async retire(): Promise<void> {
    await this.batches.idle()
    await this.settlePending()
    const { pages } = this.head
    await this.putHead({ pages: {}, tail: {} }, new Map())
    this.stored.clear()
    this.dirty.clear()
    await inParallel(Object.entries(pages), ([page, slot]) =>
      this.rows.overwrite(`${page}${slot}`, { records: {} }),
    )
  }

  async close(): Promise<void> {
    await this.batches.idle()
    if (this.dirty.size === 0) return
    // A last attempt; whoever asked for these writes was told that they failed.
    await this.batches.write(new Map()).catch(() => {})
  }

  private newest(name: string): string | null | undefined {
    const unwritten = this.batches.unwritten(name)
    if (unwritten !== undefined) return unwritten
    const dirty = this.dirty.get(name)
    return dirty === undefined ? this.stored.get(name) : dirty
  }

  private apply(changes: ReadonlyMap<string, string | null>): void {
    for (const [name, text] of changes) {
      if (text === null) this.stored.delete(name)
      else this.stored.set(name, text)
    }
  }

  private async run(batch: ReadonlyMap<string, string | null>): Promise<void> {
    for (const [name, text] of batch) this.dirty.set(name, text)
    await this.settlePending()
    const changes = new Map(this.dirty)
    if (changes.size === 0) return
    const { head, pages } = nextWrite(this.head, this.stored, changes)
    await inParallel(pages, ({ page, slot, records }) => this.rows.overwrite(`${page}${slot}`, { records }))
    await this.putHead(head, changes)
  }

  private async settlePending(): Promise<void> {
    const { pending } = this
    if (pending !== undefined) await this.commit(pending)
  }

  private async putHead(head: SessionHead, changes: Map<string, string | null>): Promise<void> {
    this.pending = { head, changes, revision: this.rows.newRevision() }
    await this.commit(this.pending)
  }

  private async commit(pending: NonNullable<StoreRecords['pending']>): Promise<void> {
    const { head, revision, changes } = pending
    if (!(await this.rows.put('head', head, this.revision, revision))) throw this.rows.lost()
    this.head = head
    this.revision = revision
    this.pending = undefined
    this.apply(changes)
    for (const [name, text] of changes) if (this.dirty.get(name) === text) this.dirty.delete(name)
  }
}

export interface ImportOptions {
  /** Where the sessions' folders are, as in option `folder`. */
  folder: string
  session: string
  store: SessionStore
  /** Replaces a session that the store has. Default false. */
  overwrite?: boolean
}

/**
 * Copies a paired session from its folder into a store, while no bot uses it; the files stay. Opens the store, and
 * closes it again if it was not open. @returns how many records.
 * @throws ConfigError if there is no such session, or the store has one and `overwrite` is not set. StoreError
 */
export async function importFolder(options: ImportOptions): Promise<number> {
  const { folder, session, store, overwrite = false } = options
  const found = await readSessionFolder(folder, session)
  if (!found.has('creds')) {
    throw new ConfigError(`There is no paired session "${session}" in the folder "${folder}".`, {
      option: 'folder',
      value: folder,
      accepted: 'the folder whose sub-folder of that name has a creds.json',
    })
  }
  const storage = new StoreStorage(store)
  const wasOpen = store.isOpen === true
  await store.open?.()
  try {
    if (overwrite) await new SessionRows(store, session, undefined).overwrite('head', { pages: {}, tail: {} })
    const records = await storage.open(session)
    if ((await records.read(['creds'])).size > 0) {
      throw new ConfigError(`The ${store.kind} store has a session "${session}" already.`, {
        option: 'overwrite',
        value: overwrite,
        accepted: 'true to replace it',
      })
    }
    await records.write(found)
    await records.close()
    return found.size
  } finally {
    if (!wasOpen) await store.close?.()
  }
}

function damagedHead(kind: string, session: string): StoreError {
  return new StoreError(
    `The WhatsApp session "${session}" in the ${kind} store is damaged: import it again from a folder (importFolder with overwrite), or clear it and pair again.`,
    { store: kind, operation: 'open', key: session },
  )
}
