/**
 * A session as a folder of JSON files. A file is written beside its place, flushed to the disk and renamed over it,
 * so that a kill at any moment leaves the old text or the new one, never half of it (scenario 22). A folder cannot
 * fence: two replicas are kept apart by the leadership alone.
 */
import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StoreError } from '@botmesh/core'
import { inParallel } from './in-parallel.js'
import type { SessionRecords, SessionStorage } from './session-storage.js'
import { WriteBatches } from './write-batches.js'

const TEMPORARY = '.botmesh-tmp'
const LEFTOVER_MS = 60_000

export class FolderStorage implements SessionStorage {
  constructor(private readonly folder: string) {}

  /** @throws StoreError if the folder cannot be made or read. */
  async open(session: string): Promise<SessionRecords> {
    const path = join(this.folder, session)
    try {
      await mkdir(path, { recursive: true, mode: 0o700 })
      await removeLeftovers(path)
    } catch (error) {
      throw new StoreError(
        `The session folder "${path}" cannot be used: check option "folder" and its permissions.`,
        { store: 'FolderStorage', operation: 'open', key: session },
        { cause: error },
      )
    }
    return new FolderRecords(path, session)
  }
}

/**
 * Removes what killed processes left half written. Young files stay: a former leader may be writing its last ones.
 * Their age is measured by the clock of the disk they are on, which may be another machine's.
 */
async function removeLeftovers(path: string): Promise<void> {
  const probe = join(path, `${randomUUID()}${TEMPORARY}`)
  await writeFile(probe, '')
  const nowMs = (await stat(probe)).mtimeMs
  await rm(probe)
  const names = (await readdir(path)).filter((name) => name.endsWith(TEMPORARY))
  await inParallel(names, async (name) => {
    try {
      const file = join(path, name)
      if (nowMs - (await stat(file)).mtimeMs > LEFTOVER_MS) await rm(file)
    } catch (error) {
      // Renamed or removed by its owner meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  })
}

class FolderRecords implements SessionRecords {
  private readonly batches = new WriteBatches((changes) => this.run(changes))
  /** Of this opening: two replicas that write at once for a moment do not write into one file. */
  private readonly nonce = randomUUID()

  constructor(
    private readonly path: string,
    private readonly session: string,
  ) {}

  async read(names: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    await inParallel(names, async (name) => {
      const unwritten = this.batches.unwritten(name)
      const text = unwritten === undefined ? await this.readFile(name) : unwritten
      if (typeof text === 'string') found.set(name, text)
    })
    return found
  }

  write(changes: ReadonlyMap<string, string | null>): Promise<void> {
    return this.batches.write(changes)
  }

  async retire(): Promise<void> {
    await this.close()
    const aside = `${this.path}.logged-out`
    await rm(aside, { recursive: true, force: true })
    await rename(this.path, aside)
  }

  async close(): Promise<void> {
    await this.batches.idle()
  }

  private async run(changes: ReadonlyMap<string, string | null>): Promise<void> {
    try {
      const names = [...changes.keys()]
      const written = names.filter((name) => typeof changes.get(name) === 'string')
      await inParallel(written, async (name) => this.writeBeside(name, changes.get(name) ?? ''))
      await inParallel(written, async (name) => rename(this.temporary(name), this.file(name)))
      await inParallel(
        names.filter((name) => !written.includes(name)),
        async (name) => rm(this.file(name), { force: true }),
      )
      await syncFolder(this.path)
    } catch (error) {
      throw new StoreError(
        `The session "${this.session}" could not be written.`,
        { store: 'FolderStorage', operation: 'write', key: this.session },
        { cause: error, retryable: true },
      )
    }
  }

  private async readFile(name: string): Promise<string | undefined> {
    try {
      return await readFile(this.file(name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw new StoreError(
        `Record "${name}" of session "${this.session}" could not be read.`,
        { store: 'FolderStorage', operation: 'read', key: this.session },
        { cause: error },
      )
    }
  }

  private async writeBeside(name: string, text: string): Promise<void> {
    const file = await open(this.temporary(name), 'w', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
  }

  private file(name: string): string {
    return join(this.path, `${fileNameOf(name)}.json`)
  }

  private temporary(name: string): string {
    return `${this.file(name)}.${this.nonce}${TEMPORARY}`
  }
}

/** As Baileys' own multi-file state names its files, so that its folders are taken over. */
export function fileNameOf(record: string): string {
  return record.replaceAll('/', '__').replaceAll(':', '-')
}

/** Every record of a session's folder, by the name of its file; empty if there is no such folder. @throws StoreError */
export async function readSessionFolder(folder: string, session: string): Promise<Map<string, string>> {
  const path = join(folder, session)
  const found = new Map<string, string>()
  try {
    const files = (await readdir(path)).filter((name) => name.endsWith('.json'))
    await inParallel(files, async (file) => {
      found.set(file.slice(0, -'.json'.length), await readFile(join(path, file), 'utf8'))
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return found
    throw new StoreError(
      `The session folder "${path}" could not be read.`,
      { store: 'FolderStorage', operation: 'import', key: session },
      { cause: error },
    )
  }
  return found
}

/** Makes the renames durable; some systems cannot flush a folder, and need not. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } catch (error) {
    if (!['EPERM', 'EINVAL', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await folder.close()
  }
}
