/**
 * The files of one session's folder. A file is written beside its place, flushed to the disk and renamed over it, so
 * that a kill at any moment leaves the old text or the new one, never half of it. Several files change as one: their
 * changes are written down in a note first, and whoever finds the note carries them out (scenario 22).
 */
import * as disk from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { z } from 'zod'
import { inParallel } from './in-parallel.js'

/** What of `node:fs/promises` is used; tests break it at chosen calls. */
export type Disk = Pick<
  typeof disk,
  'mkdir' | 'open' | 'readdir' | 'readFile' | 'rename' | 'rm' | 'stat' | 'writeFile'
>

/** Record name → text; null: removed. */
export type Changes = ReadonlyMap<string, string | null>

const RECORD = '.json'
const TEMPORARY = '.botmesh-tmp'
const NOTE = '.botmesh-batch'
const LEFTOVER_MS = 60_000

const noteSchema = z.record(z.string(), z.string().nullable())

export class FolderFiles {
  /** Of this opening: two replicas that write at once for a moment do not write into one file. */
  private readonly nonce = randomUUID()
  private readonly noteFile = `${this.nonce}${NOTE}`

  constructor(
    readonly path: string,
    private readonly disk: Disk,
  ) {}

  /** Undefined: there is none. */
  read(record: string): Promise<string | undefined> {
    return orAbsent(this.disk.readFile(this.at(fileOf(record)), 'utf8'))
  }

  /** From here on the changes happen, whoever carries them out. */
  async note(changes: Changes): Promise<void> {
    await this.writeBeside(this.noteFile, JSON.stringify(Object.fromEntries(changes)))
    await this.disk.rename(this.temporary(this.noteFile), this.at(this.noteFile))
    await this.sync()
  }

  async dropNote(): Promise<void> {
    await this.disk.rm(this.at(this.noteFile), { force: true })
  }

  /** Durable when it resolves. Each file whole or not at all; doing it again does no harm. */
  async apply(changes: Changes): Promise<void> {
    const written = [...changes].filter((one): one is [string, string] => one[1] !== null)
    const removed = [...changes.keys()].filter((record) => changes.get(record) === null)
    await inParallel(written, ([record, text]) => this.writeBeside(fileOf(record), text))
    await inParallel(written, ([record]) =>
      this.disk.rename(this.temporary(fileOf(record)), this.at(fileOf(record))),
    )
    await inParallel(removed, (record) => this.disk.rm(this.at(fileOf(record)), { force: true }))
    await this.sync()
  }

  /**
   * Carries out what a killed process has noted, and removes what it left half written.
   * @returns the notes that cannot be read; they are put aside.
   */
  async tidy(): Promise<string[]> {
    const damaged: string[] = []
    for (const { file, changes } of await this.notes()) {
      if (changes === null) {
        damaged.push(file)
        await this.disk.rename(this.at(file), this.at(`${file}.damaged`))
        continue
      }
      await this.apply(changes)
      await this.disk.rm(this.at(file), { force: true })
    }
    await this.removeLeftovers()
    return damaged
  }

  /** Notes of processes that did not come to carry them out, oldest first. */
  private async notes(): Promise<{ file: string; changes: Changes | null }[]> {
    const found: { file: string; changes: Changes | null; at: number }[] = []
    for (const file of (await this.names()).filter((name) => name.endsWith(NOTE))) {
      try {
        const at = (await this.disk.stat(this.at(file))).mtimeMs
        found.push({ file, at, changes: readNote(await this.disk.readFile(this.at(file), 'utf8')) })
      } catch (error) {
        // Carried out and removed by its owner meanwhile.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
    return found.sort((a, b) => a.at - b.at)
  }

  /**
   * Every record by the name of its file, with what is noted and not carried out. Changes nothing.
   * @returns undefined if there is no such folder. A folder that vanishes meanwhile is a failure like any other.
   */
  async all(): Promise<Map<string, string> | undefined> {
    const names = await orAbsent(this.names())
    if (names === undefined) return undefined
    const found = new Map<string, string>()
    const files = names.filter((name) => name.endsWith(RECORD))
    await inParallel(files, async (file) => {
      const text = await orAbsent(this.disk.readFile(this.at(file), 'utf8'))
      // Absent: a record that somebody has removed since.
      if (text !== undefined) found.set(file.slice(0, -RECORD.length), text)
    })
    for (const { changes } of await this.notes()) {
      for (const [record, text] of changes ?? []) {
        if (text === null) found.delete(fileNameOf(record))
        else found.set(fileNameOf(record), text)
      }
    }
    return found
  }

  /**
   * Young files stay: a former leader may be writing its last ones. Their age is measured by the clock of the disk
   * that they are on, which may be another machine's.
   */
  private async removeLeftovers(): Promise<void> {
    const probe = this.temporary(randomUUID())
    await this.disk.writeFile(probe, '')
    const nowMs = (await this.disk.stat(probe)).mtimeMs
    await this.disk.rm(probe)
    const names = (await this.names()).filter((name) => name.endsWith(TEMPORARY))
    await inParallel(names, async (name) => {
      try {
        if (nowMs - (await this.disk.stat(this.at(name))).mtimeMs > LEFTOVER_MS)
          await this.disk.rm(this.at(name))
      } catch (error) {
        // Renamed or removed by its owner meanwhile.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    })
  }

  private async writeBeside(file: string, text: string): Promise<void> {
    const handle = await this.disk.open(this.temporary(file), 'w', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
  }

  /** Makes renames durable; some systems cannot flush a folder, and need not. */
  private async sync(): Promise<void> {
    const folder = await this.disk.open(this.path, 'r')
    try {
      await folder.sync()
    } catch (error) {
      if (!['EPERM', 'EINVAL', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    } finally {
      await folder.close()
    }
  }

  private names(): Promise<string[]> {
    return this.disk.readdir(this.path)
  }

  private at(file: string): string {
    return join(this.path, file)
  }

  private temporary(file: string): string {
    return this.at(`${file}.${this.nonce}${TEMPORARY}`)
  }
}

/** Undefined: no such file, or folder. */
async function orAbsent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** As Baileys' own multi-file state names its files, so that its folders are taken over. */
export function fileNameOf(record: string): string {
  return record.replaceAll('/', '__').replaceAll(':', '-')
}

function fileOf(record: string): string {
  return `${fileNameOf(record)}${RECORD}`
}

/** @returns null for what is no note. */
function readNote(text: string): Changes | null {
  try {
    return new Map(Object.entries(noteSchema.parse(JSON.parse(text))))
  } catch {
    return null
  }
}
