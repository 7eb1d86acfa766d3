/**
 * Whether the machine stood still. On real servers a cell presumes that no replica but the one it freezes waits for long:
 * all of them run in one process, on one disk, and where that does not answer for a good part of a lease, another replica
 * takes over, as it must, and the cell is another one. So the time that a small write takes is watched, and what came out
 * otherwise than it should is played again if, and only if, one took too long meanwhile.
 */
import { systemClock, type Store } from '@botmesh/core'
import { testCheckpoint } from '@botmesh/core/testing'
import { onTestEnd } from '../../support/index.js'

const EVERY_MS = 100
const MOST_TIMES = 3

interface Write {
  from: number
  to: number
}

export class Stalls {
  private readonly writes: Write[] = []
  private over = false
  private readonly watching: Promise<void>[] = []

  /** @param store of its own, on the same database; closed with the spec file. */
  watch(store: Store): void {
    const watching = this.probe(store)
    this.watching.push(watching)
    onTestEnd(async () => {
      this.over = true
      await watching
      await store.close?.()
    })
  }

  /**
   * Plays until it comes out right, or wrong without a stall, at most three times. What came out wrong is said.
   * @param once calls its argument with the time at which what may be stalled begins, if that is not at once
   * @param isRight what came out
   * @param options.tolerableMs how long a write may take without an effect on what is played
   */
  async play<T>(
    once: (begun: (at: number) => void) => Promise<T>,
    isRight: (seen: T) => boolean,
    { name, tolerableMs }: { name: string; tolerableMs: number },
  ): Promise<T> {
    for (let times = 1; ; times += 1) {
      let from = systemClock.monotonic()
      const seen = await once((at) => (from = at)).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      )
      const wrong = 'error' in seen || !isRight(seen.value)
      if (wrong && times < MOST_TIMES && this.since(from, tolerableMs)) {
        const what = 'error' in seen ? String(seen.error) : JSON.stringify(seen.value)
        console.warn(`${name}: played again, a write took over ${Math.round(tolerableMs)} ms. It was ${what}`)
        continue
      }
      if ('error' in seen) throw seen.error
      return seen.value
    }
  }

  private since(from: number, tolerableMs: number): boolean {
    const now = systemClock.monotonic()
    return this.writes.some((write) => write.to > from && Math.min(write.to, now) - write.from > tolerableMs)
  }

  private async probe(store: Store): Promise<void> {
    for (let n = 1; !this.over; n += 1) {
      // The pause counts as well: this process may stand still in it.
      const write = { from: systemClock.monotonic() + EVERY_MS, to: Infinity }
      this.writes.push(write)
      await new Promise<void>((resolve) => void systemClock.setTimeout(resolve, EVERY_MS))
      await store.setCheckpoint('probe', testCheckpoint(`1:${n}`)).catch(() => undefined)
      write.to = systemClock.monotonic()
    }
  }
}
