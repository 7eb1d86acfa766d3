/** Scenario 22: a session's folder, whatever call to the disk is the last, or fails. */
import * as nodeDisk from 'node:fs/promises'
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { FolderStorage, importFolder, StoreStorage, type SessionRecords } from '@botmesh/baileys'
import { MemoryStore, StoreError } from '@botmesh/core'
import type { Disk } from '../src/folder-files.js'
import { readSessionFolder } from '../src/folder-storage.js'
import { FaultyDisk, type Fault } from './support/faulty-disk.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'botmesh-faults-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const KEPT = ['creds', 'session-1.0', 'app-state-sync-key-x']
/** Round `n`: some records change, one comes, one goes. */
const round = (n: number): Map<string, string | null> =>
  new Map([
    ...KEPT.map((name) => [name, JSON.stringify({ n, filler: 'x'.repeat(3000) })] as const),
    [`pre-key-${n}`, JSON.stringify({ n })],
    [`pre-key-${n - 1}`, null],
  ])
const names = [...KEPT, 'pre-key-0', 'pre-key-1', 'pre-key-2', 'pre-key-3', 'pre-key-4']

const changed = (name: string, text: string) => new Map([[name, text]])

/** The round that every record is of; anything between two rounds fails the test. */
async function roundOf(records: SessionRecords): Promise<number> {
  const found = await records.read(names)
  const { n } = JSON.parse(found.get('creds') ?? '{}') as { n: number }
  const expected = new Map([...round(n)].filter(([, text]) => text !== null))
  expect(found).toEqual(expected)
  return n
}

/** Writes rounds 2 and 3 over round 1. @returns the last that was acknowledged. */
async function life(session: string, faulty: FaultyDisk): Promise<number> {
  await (await new FolderStorage(folder).open(session)).write(round(1))
  let acknowledged = 1
  const writing = async () => {
    const records = await new FolderStorage(folder, faulty.disk).open(session)
    for (const n of [2, 3]) {
      await records.write(round(n))
      acknowledged = n
    }
  }
  await Promise.race([writing(), faulty.died])
  await faulty.bury()
  return acknowledged
}

async function callsOfALife(): Promise<string[]> {
  const counting = new FaultyDisk()
  expect(await life('counted', counting)).toBe(3)
  const kinds = new Set(counting.calls)
  for (const kind of ['open w', 'write', 'sync', 'close', 'rename', 'rm', 'open r'])
    expect(kinds).toContain(kind)
  return counting.calls
}

const faultsAt = (calls: string[], whats: readonly Fault[]) =>
  calls.flatMap((call, index) =>
    whats.filter((what) => what !== 'half' || call === 'write').map((what) => ({ at: index + 1, what })),
  )

describe('scenario 22: killed at whichever call to the disk', () => {
  it('before, in the middle of, or after it: the next process finds one whole round, the last or the one before, and goes on', async () => {
    const calls = await callsOfALife()
    expect(calls.length).toBeGreaterThan(40)
    for (const fault of faultsAt(calls, ['before', 'half', 'after'])) {
      const session = `s-${fault.at}-${fault.what}`
      const faulty = new FaultyDisk()
      faulty.fault = fault
      const acknowledged = await life(session, faulty)
      // From a folder into a store, without starting anything on it.
      const store = new MemoryStore()
      await importFolder({ folder, session, store })
      const next = await new FolderStorage(folder).open(session)
      const found = await roundOf(next)
      expect(found).toBeGreaterThanOrEqual(acknowledged)
      expect(found).toBeLessThanOrEqual(acknowledged + 1)
      expect(await roundOf(await new StoreStorage(store).open(session))).toBe(found)
      await next.write(round(found + 1))
      expect(await roundOf(await new FolderStorage(folder).open(session))).toBe(found + 1)
    }
  }, 60_000)

  it('a process that dies while it carries out what the dead one had noted changes nothing', async () => {
    const calls = await callsOfALife()
    // Dead at the first rename after the note's: the note lies there.
    const renames = calls.flatMap((call, index) => (call === 'rename' ? [index + 1] : []))
    const noted = new FaultyDisk()
    noted.fault = { at: renames[1] ?? 0, what: 'after' }
    await life('s', noted)
    for (let at = 1; at < 60; at++) {
      const opening = new FaultyDisk()
      opening.fault = { at, what: at % 2 === 0 ? 'before' : 'after' }
      const opened = new FolderStorage(folder, opening.disk).open('s')
      await Promise.race([opened, opening.died])
      await opening.bury()
    }
    expect(await roundOf(await new FolderStorage(folder).open('s'))).toBe(2)
  })
})

describe('a disk that fails', () => {
  it('at whichever call, with or without effect: told, and whole before and after; the next batch is written', async () => {
    const calls = await callsOfALife()
    const opening = calls.indexOf('open w')
    for (const fault of faultsAt(calls, ['failed', 'lost'])) {
      if (fault.at <= opening) continue
      const session = `f-${fault.at}-${fault.what}`
      const faulty = new FaultyDisk()
      await (await new FolderStorage(folder).open(session)).write(round(1))
      const records = await new FolderStorage(folder, faulty.disk).open(session)
      faulty.fault = fault
      let acknowledged = 1
      for (const n of [2, 3]) {
        const failure = await records.write(round(n)).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (failure === undefined) acknowledged = n
        else {
          expect(failure).toBeInstanceOf(StoreError)
          break
        }
      }
      const seen = await roundOf(records)
      const found = await roundOf(await new FolderStorage(folder).open(session))
      expect(found).toBe(seen)
      expect([acknowledged, acknowledged + 1]).toContain(found)
      await records.write(round(found + 1))
      expect(await roundOf(await new FolderStorage(folder).open(session))).toBe(found + 1)
      await faulty.bury()
    }
  }, 60_000)

  it('scenario 22: a batch that can be neither noted nor taken back: the first failure is told, and the batch comes before the next', async () => {
    await (await new FolderStorage(folder).open('s')).write(round(1))
    let broken = true
    const failing = (name: string, path: unknown) => {
      if (broken && String(path).endsWith('.botmesh-batch')) throw new Error(`${name} failed`)
    }
    const disk: Disk = {
      ...nodeDisk,
      // It is done, and says otherwise.
      rename: async (from, to) => {
        await nodeDisk.rename(from, to)
        failing('rename', to)
      },
      rm: async (path, options) => {
        failing('rm', path)
        await nodeDisk.rm(path, options)
      },
    }
    const records = await new FolderStorage(folder, disk).open('s')
    const refusal = await records.write(round(2)).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(StoreError)
    expect(refusal).toMatchObject({
      cause: { message: expect.stringContaining('rm failed'), cause: { message: 'rename failed' } },
    })
    expect(await roundOf(records)).toBe(2)
    broken = false
    await records.write(changed('pre-key-2', 'newer'))
    const expected = new Map([...round(2)].filter(([, text]) => text !== null))
    expect(await (await new FolderStorage(folder).open('s')).read(names)).toEqual(
      expected.set('pre-key-2', 'newer'),
    )
  })

  it('a note that cannot be read is put aside and named; what it was about stays as it was', async () => {
    await (await new FolderStorage(folder).open('s')).write(round(1))
    await writeFile(join(folder, 's', 'x.botmesh-batch'), '{"creds":')
    const records = await new FolderStorage(folder).open('s')
    expect(records.damaged).toEqual(['x.botmesh-batch'])
    expect(await roundOf(records)).toBe(1)
    expect(await readFile(join(folder, 's', 'x.botmesh-batch.damaged'), 'utf8')).toBe('{"creds":')
    expect((await new FolderStorage(folder).open('s')).damaged).toEqual([])
  })

  it('nothing is left of dead processes once a minute has passed', async () => {
    const calls = await callsOfALife()
    const faulty = new FaultyDisk()
    faulty.fault = { at: calls.indexOf('write') + 1, what: 'half' }
    await life('s', faulty)
    const left = (await readdir(join(folder, 's'))).filter((name) => name.endsWith('.botmesh-tmp'))
    expect(left.length).toBeGreaterThan(0)
    await Promise.all(left.map((name) => utimes(join(folder, 's', name), 0, 0)))
    await new FolderStorage(folder).open('s')
    expect((await readdir(join(folder, 's'))).filter((name) => !name.endsWith('.json'))).toEqual([])
  })
})

describe('scenario 22: a folder that changes while it is read for an import', () => {
  /** `vanish` runs after the folder was listed. */
  const changing = (vanish: () => Promise<void>): Disk => {
    let listed = false
    return {
      ...nodeDisk,
      readdir: (async (path: string) => {
        const found = await nodeDisk.readdir(path)
        if (!listed) await vanish()
        listed = true
        return found
      }) as unknown as Disk['readdir'],
    }
  }

  it('a record that is removed meanwhile is left out; the others are there', async () => {
    await (await new FolderStorage(folder).open('s')).write(round(1))
    const disk = changing(() => rm(join(folder, 's', 'pre-key-1.json')))
    expect([...(await readSessionFolder(folder, 's', disk)).keys()].sort()).toEqual([...KEPT].sort())
  })

  it('a folder that is removed meanwhile is a failure, not a session that was never paired', async () => {
    await (await new FolderStorage(folder).open('s')).write(round(1))
    const disk = changing(() => rm(join(folder, 's'), { recursive: true }))
    await expect(readSessionFolder(folder, 's', disk)).rejects.toBeInstanceOf(StoreError)
    expect(await readSessionFolder(folder, 's')).toEqual(new Map())
  })
})
