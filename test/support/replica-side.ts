/** The other end of `spawnReplica`: what a replica's script tells its test, and what the test tells it. */
import { createInterface } from 'node:readline'

/** Tells the test that something happened. */
export function tell(event: string, fields: object = {}): void {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`)
}

/** Calls `fn` for each command of the test (`replica.send`); ends the process when the test has gone. */
export function onCommand(fn: (command: Record<string, unknown>) => void): void {
  const lines = createInterface(process.stdin)
  lines.on('line', (line) => fn(JSON.parse(line) as Record<string, unknown>))
  lines.on('close', () => process.exit(0))
}
