/**
 * The few functions of a test framework that the suites use, passed in, so that the published code depends on none:
 * Jest's `{ describe, it, expect }` fit as they are, and so do Vitest's.
 */
export interface Matchers {
  toBe(expected: unknown): unknown
  toEqual(expected: unknown): unknown
  toMatchObject(expected: object): unknown
  toBeNull(): unknown
  toBeDefined(): unknown
  toBeUndefined(): unknown
  toBeGreaterThan(expected: number): unknown
  toBeGreaterThanOrEqual(expected: number): unknown
  toBeLessThan(expected: number): unknown
  toBeLessThanOrEqual(expected: number): unknown
}

export interface TestApi {
  describe: (name: string, define: () => void) => void
  it: (name: string, run: () => Promise<void>, timeoutMs?: number) => void
  expect: (actual: unknown) => Matchers & { not: Matchers }
}

/** The error that `promise` rejects with. @throws Error if it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if ('error' in settled) return settled.error
  throw new Error(`Expected a rejection; it resolved to ${JSON.stringify(settled.value)}.`)
}
