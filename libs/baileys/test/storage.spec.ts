/** Session records: whole or not at all, in order, also when the process is killed while it writes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { LeaseLostError, StoreError } from '@botmesh/core'
import { FolderStorage, type SessionRecords, type SessionStorage } from '@botmesh/baileys'
import { Bench, FencedSink, forgetSeed, isOpen } from '../../../test/support/whatsapp-session/bench.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'botmesh-session-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

describe('FolderStorage', () => {
  it('reads what was written, before and after it is durable; the last call wins; null removes', async () => {
    const records = await new FolderStorage(folder).open('s')
    const first = records.write(
      new Map([
        ['creds', '1'],
        ['pre-key-1', 'a'],
      ]),
    )
    const second = records.write(
      new Map([
        ['creds', '2'],
        ['pre-key-1', null],
      ]),
    )
    expect(await records.read(['creds', 'pre-key-1', 'absent'])).toEqual(new Map([['creds', '2']]))
    await Promise.all([first, second])
    const third = records.write(new Map([['creds', '3']]))
    expect((await records.read(['creds'])).get('creds')).toBe('3')
    await third
    const reopened = await new FolderStorage(folder).open('s')
    expect(await reopened.read(['creds', 'pre-key-1'])).toEqual(new Map([['creds', '3']]))
    expect(readdirSync(join(folder, 's'))).toEqual(['creds.json'])
  })

  it('names of keys become names of files as in Baileys’ own folders', async () => {
    const records = await new FolderStorage(folder).open('s')
    await records.write(
      new Map([
        ['session-5215550002222:3', 'x'],
        ['sender-key-1@g.us::5@lid::0', 'y'],
        ['a/b', 'z'],
      ]),
    )
    expect(readdirSync(join(folder, 's')).sort()).toEqual([
      'a__b.json',
      'sender-key-1@g.us--5@lid--0.json',
      'session-5215550002222-3.json',
    ])
  })

  it('retire puts the session aside, replacing an earlier one', async () => {
    for (const text of ['old', 'new']) {
      const records = await new FolderStorage(folder).open('s')
      expect((await records.read(['creds'])).size).toBe(0)
      await records.write(new Map([['creds', text]]))
      await records.retire()
    }
    expect(readFileSync(join(folder, 's.logged-out', 'creds.json'), 'utf8')).toBe('new')
    expect(existsSync(join(folder, 's'))).toBe(false)
  })

  it('a folder that cannot be used is a StoreError that names it', async () => {
    await writeFile(join(folder, 'file'), '')
    const error = await new FolderStorage(join(folder, 'file')).open('s').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreError)
    expect(String(error)).toContain(join(folder, 'file', 's'))
  })

  it('a failed write rejects, and later ones work', async () => {
    const records = await new FolderStorage(folder).open('s')
    await rm(join(folder, 's'), { recursive: true })
    await expect(records.write(new Map([['creds', '1']]))).rejects.toBeInstanceOf(StoreError)
    const healed = await new FolderStorage(folder).open('s')
    await healed.write(new Map([['creds', '2']]))
    await records.write(new Map([['creds', '3']]))
    await records.close()
    expect((await healed.read(['creds'])).get('creds')).toBe('3')
  })

  it('scenario 22: killed while writing, again and again: every record is whole, and nothing half written stays', async () => {
    const script = join(folder, 'writer.mjs')
    await build({
      entryPoints: [fileURLToPath(new URL('../src/folder-storage.ts', import.meta.url))],
      outfile: join(folder, 'storage.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      conditions: ['@botmesh/source'],
      banner: {
        js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
      },
      logLevel: 'error',
    })
    await writeFile(
      script,
      `import { FolderStorage } from './storage.mjs'
       const records = await new FolderStorage(${JSON.stringify(folder)}).open('s')
       for (let n = 0; ; n++) {
         const text = JSON.stringify({ n, filler: String(n % 10).repeat(60_000) })
         await records.write(new Map([['creds', text], ['pre-key-' + (n % 5), text], ['pre-key-' + ((n + 1) % 5), null]]))
         if (n === 3) process.stdout.write('writing')
       }`,
    )
    for (let round = 0; round < 6; round++) {
      const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
      await once(child.stdout, 'data')
      for (let spin = 0; spin < round * 3; spin++) await new Promise((resolve) => setImmediate(resolve))
      child.kill('SIGKILL')
      await once(child, 'exit')
      const left = readdirSync(join(folder, 's')).filter((name) => !name.endsWith('.json'))
      await Promise.all(left.map((name) => utimes(join(folder, 's', name), 0, 0)))
      const records = await new FolderStorage(folder).open('s')
      const names = readdirSync(join(folder, 's'))
      expect(names.filter((name) => !name.endsWith('.json'))).toEqual([])
      const found = await records.read(names.map((name) => name.replace('.json', '')))
      expect(found.has('creds')).toBe(true)
      for (const text of found.values()) {
        const { n, filler } = JSON.parse(text) as { n: number; filler: string }
        expect(filler).toBe(String(n % 10).repeat(60_000))
      }
    }
  })
})

describe('a session kept elsewhere', () => {
  /** A storage shared by two replicas that fences by the highest fence that opened it. */
  class FencedStorage implements SessionStorage {
    readonly texts = new Map<string, string>()
    readonly opened: (number | undefined)[] = []
    refused = 0
    private highest = 0

    async open(_session: string, fence = 0): Promise<SessionRecords> {
      this.opened.push(fence)
      this.highest = Math.max(this.highest, fence)
      return {
        read: async (names) =>
          new Map(
            names.flatMap((name) => (this.texts.has(name) ? [[name, this.texts.get(name) ?? '']] : [])),
          ),
        write: async (changes) => {
          if (fence < this.highest) {
            this.refused += 1
            throw new LeaseLostError('provider:baileys:tienda', 'superseded', { fence })
          }
          for (const [name, text] of changes) {
            if (text === null) this.texts.delete(name)
            else this.texts.set(name, text)
          }
        },
        retire: async () => this.texts.clear(),
        close: async () => {},
      }
    }
  }

  it('Z9: a former leader whose write is refused closes for good and overwrites nothing', async () => {
    const bench = await Bench.start()
    const storage = new FencedStorage()
    const old = bench.provider({ storage })
    const oldSink = new FencedSink(5)
    await bench.pair(old, oldSink)
    expect(storage.opened).toEqual([5])
    // Another replica leads from now on; this one has not noticed.
    await storage.open('tienda', 6)
    const before = new Map(storage.texts)
    const closed = oldSink.until((sink) => sink.states.at(-1)?.status === 'closed')
    bench.whatsapp.drop()
    await closed
    await oldSink.until(
      (sink) =>
        sink.states.some((state) => state.status === 'closed' && state.final === true) || isOpen(sink),
    )
    await old.stop()
    expect(storage.refused).toBeGreaterThan(0)
    expect(storage.texts).toEqual(before)
    const fresh = new FencedSink(7)
    const next = bench.provider({ storage })
    await next.start(fresh, new AbortController().signal)
    await fresh.until(isOpen)
    expect(fresh.pairings).toEqual([])
    await bench.stop()
    await forgetSeed()
  })
})
