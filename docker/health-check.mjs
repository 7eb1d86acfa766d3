/**
 * Asks the replica in this container how it is: exit code 0 if it answers 2xx, else 1 and one line that says why.
 *
 *   node health-check.mjs [path]     default /health/live; PORT as the application's
 */
const path = process.argv[2] ?? '/health/live'
const url = `http://127.0.0.1:${process.env.PORT ?? '3000'}${path}`
try {
  const response = await fetch(url, { signal: AbortSignal.timeout(2500) })
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
} catch (error) {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : ''
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}${cause}\n`)
  process.exitCode = 1
}
