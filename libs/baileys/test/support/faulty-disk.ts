/** A disk whose process dies, or that fails, at a chosen call: open, write, flush, close, rename, removal, …. */
import * as disk from 'node:fs/promises'
import type { Disk } from '../../src/folder-files.js'

/** `half`: of what was to be written. `failed`: the call did nothing and says so; `lost`: it did, and says otherwise. */
export type Fault = 'before' | 'half' | 'after' | 'failed' | 'lost'

export class FaultyDisk {
  readonly calls: string[] = []
  /** What goes wrong at which call, counted from 1. */
  fault: { at: number; what: Fault } | undefined
  readonly died: Promise<void>
  private die: () => void = () => {}
  private dead = false
  private readonly handles = new Set<disk.FileHandle>()

  constructor() {
    this.died = new Promise((resolve) => (this.die = resolve))
  }

  readonly disk: Disk = {
    ...disk,
    open: (async (path: string, flags: string, mode: number) => {
      const handle = await this.call(`open ${flags}`, async () => {
        const opened = await disk.open(path, flags, mode)
        if (this.dead) await opened.close()
        else this.handles.add(opened)
        return opened
      })
      // What is used of a handle, no more.
      return {
        writeFile: (text: string) =>
          this.call(
            'write',
            () => handle.writeFile(text),
            () => handle.writeFile(text.slice(0, text.length / 2)),
          ),
        sync: () => this.call('sync', () => handle.sync()),
        close: () =>
          this.call('close', async () => {
            this.handles.delete(handle)
            await handle.close()
          }),
      }
    }) as unknown as Disk['open'],
    rename: (from, to) => this.call('rename', () => disk.rename(from, to)),
    rm: (path, options) => this.call('rm', () => disk.rm(path, options)),
    mkdir: ((path: string, options: object) =>
      this.call('mkdir', () => disk.mkdir(path, options))) as Disk['mkdir'],
    writeFile: (path, data) => this.call('writeFile', () => disk.writeFile(path, data)),
  }

  private async call<T>(name: string, run: () => Promise<T>, runHalf?: () => Promise<unknown>): Promise<T> {
    if (this.dead) return never()
    const number = this.calls.push(name)
    const what = this.fault?.at === number ? this.fault.what : undefined
    if (what === 'half') await (runHalf ?? run)()
    if (what === 'before' || what === 'half') return this.end()
    if (what === 'failed') throw broken()
    const answer = await run()
    if (what === 'after') return this.end()
    if (what === 'lost') throw broken()
    return answer
  }

  private end(): Promise<never> {
    this.dead = true
    this.die()
    return never()
  }

  /** What a dead process has open is closed for it. */
  async bury(): Promise<void> {
    await Promise.all([...this.handles].map((handle) => handle.close()))
    this.handles.clear()
  }
}

const never = (): Promise<never> => new Promise(() => {})

function broken(): NodeJS.ErrnoException {
  return Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
}
