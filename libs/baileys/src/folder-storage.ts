/**
 * A session as a folder of JSON files; how they are written: folder-files.ts. A folder cannot fence: two replicas are
 * kept apart by the leadership alone.
 */
import * as nodeDisk from 'node:fs/promises'
import { join } from 'node:path'
import { StoreError } from '@botmesh/core'
import { FolderFiles, type Changes, type Disk } from './folder-files.js'
import { inParallel } from './in-parallel.js'
import type { SessionRecords, SessionStorage } from './session-storage.js'
import { WriteBatches } from './write-batches.js'

export class FolderStorage implements SessionStorage {
  /** @param disk how files are reached; for tests. */
  constructor(
    private readonly folder: string,
    private readonly disk: Disk = nodeDisk,
  ) {}

  /** @throws StoreError if the folder cannot be made or read. */
  async open(session: string): Promise<SessionRecords> {
    const path = join(this.folder, session)
    const files = new FolderFiles(path, this.disk)
    try {
      await this.disk.mkdir(path, { recursive: true, mode: 0o700 })
      return new FolderRecords(files, session, this.disk, await files.tidy())
    } catch (error) {
      throw new StoreError(
        `The session folder "${path}" cannot be used: check option "folder" and its permissions.`,
        { store: 'FolderStorage', operation: 'open', key: session },
        { cause: error },
      )
    }
  }
}

class FolderRecords implements SessionRecords {
  private readonly batches = new WriteBatches((changes) => this.run(changes))
  /** It may be noted and is not carried out for certain: that comes before anything else is written. */
  private noted: Changes | undefined

  constructor(
    private readonly files: FolderFiles,
    private readonly session: string,
    private readonly disk: Disk,
    readonly damaged: readonly string[],
  ) {}

  async read(names: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    await inParallel(names, async (name) => {
      let text: string | null | undefined = this.batches.unwritten(name)
      if (text === undefined) text = this.noted?.get(name)
      if (text === undefined) text = await this.readFile(name)
      if (typeof text === 'string') found.set(name, text)
    })
    return found
  }

  write(changes: Changes): Promise<void> {
    return this.batches.write(changes)
  }

  async retire(): Promise<void> {
    await this.close()
    const aside = `${this.files.path}.logged-out`
    await this.disk.rm(aside, { recursive: true, force: true })
    await this.disk.rename(this.files.path, aside)
  }

  async close(): Promise<void> {
    await this.batches.idle()
  }

  private async run(changes: Changes): Promise<void> {
    try {
      await this.carryOut()
      // One file is replaced as a whole anyway.
      if (changes.size < 2) return await this.files.apply(changes)
      await this.note(changes)
      await this.carryOut()
    } catch (error) {
      throw new StoreError(
        `The session "${this.session}" could not be written.`,
        { store: 'FolderStorage', operation: 'write', key: this.session },
        { cause: error, retryable: true },
      )
    }
  }

  private async note(changes: Changes): Promise<void> {
    this.noted = changes
    try {
      await this.files.note(changes)
    } catch (error) {
      // It may lie there all the same, and must not be found once newer things are written.
      await this.files.dropNote().catch((failure: unknown) => {
        // So it stays in `noted`: whoever opens the folder would carry it out, and this process has to do so too, before
        // it writes anything newer, and reads it until then.
        throw new Error(`A batch could not be noted, nor its note be removed again (${String(failure)}).`, {
          cause: error,
        })
      })
      this.noted = undefined
      throw error
    }
  }

  private async carryOut(): Promise<void> {
    if (this.noted === undefined) return
    await this.files.apply(this.noted)
    await this.files.dropNote()
    this.noted = undefined
  }

  private async readFile(name: string): Promise<string | undefined> {
    try {
      return await this.files.read(name)
    } catch (error) {
      throw new StoreError(
        `Record "${name}" of session "${this.session}" could not be read.`,
        { store: 'FolderStorage', operation: 'read', key: this.session },
        { cause: error },
      )
    }
  }
}

/** Every record of a session's folder, by the name of its file; empty if there is no such folder. @param disk for tests. @throws StoreError */
export async function readSessionFolder(
  folder: string,
  session: string,
  disk: Disk = nodeDisk,
): Promise<Map<string, string>> {
  const path = join(folder, session)
  try {
    return (await new FolderFiles(path, disk).all()) ?? new Map<string, string>()
  } catch (error) {
    throw new StoreError(
      `The session folder "${path}" could not be read.`,
      { store: 'FolderStorage', operation: 'import', key: session },
      { cause: error },
    )
  }
}
