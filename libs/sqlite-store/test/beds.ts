/** Beds for the conformance suites on a file in a folder of its own. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StoreBed } from '@botmesh/core/testing'
import { storesOf } from '@botmesh/sql-store/testing'
import { SQLiteStore, type SQLiteStoreOptions } from '../src/index.js'

export interface Folder {
  path(name?: string): string
  remove(): void
}

export function folder(): Folder {
  const dir = mkdtempSync(join(tmpdir(), 'botmesh-sqlite-'))
  return {
    path: (name = `${randomUUID()}.db`) => join(dir, name),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** Several stores on one new file. */
export function fileBed(files: Folder, options: Partial<SQLiteStoreOptions> = {}): StoreBed {
  const path = files.path()
  const make = (more: SQLiteStoreOptions): SQLiteStore => new SQLiteStore(more)
  return {
    ...storesOf(make, { path, synchronous: 'normal', ...options }),
    pass: (ms) => sleep(ms),
    until: (promise) => promise,
  }
}
