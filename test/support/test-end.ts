/** What a spec file started ends with it, the last first, also when its tests fail. */
import { afterAll } from '@jest/globals'

const endings: Array<() => Promise<void> | void> = []

/** Runs `fn` after the last test of the file that imports this. */
export function onTestEnd(fn: () => Promise<void> | void): void {
  endings.push(fn)
}

afterAll(async () => {
  const failures: unknown[] = []
  for (const end of endings.splice(0).reverse()) {
    try {
      await end()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Cleaning up after the tests failed')
}, 30_000)
