/**
 * Keeps private keys out of the output. Baileys' Signal library prints whole sessions, keys included, on the
 * console whenever it opens or closes one, and offers no switch. Its lines, and only those, are taken out.
 */
const SESSION_DUMPS = [
  'Closing session:',
  'Opening session:',
  'Removing old closed session:',
  'Session already closed',
]

const QUIET = Symbol.for('botmesh.baileys.quiet-signal')

/** Idempotent. Changes `console.info` and `console.warn` of this process. */
export function quietSignal(target: Pick<Console, 'info' | 'warn'> = console): void {
  const marked = target as typeof target & { [QUIET]?: true }
  if (marked[QUIET] === true) return
  marked[QUIET] = true
  for (const level of ['info', 'warn'] as const) {
    const print = target[level].bind(target)
    target[level] = (...args: unknown[]) => {
      const isDump = args.length > 1 && typeof args[0] === 'string' && SESSION_DUMPS.includes(args[0])
      if (!isDump) print(...args)
    }
  }
}
