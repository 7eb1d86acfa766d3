/** What the demo is told on its command line. */
export interface DemoSettings {
  replay: boolean
  /** No Redis: three replicas in this process. */
  inProcess: boolean
  /** The balancer's port; 0: any free one. */
  port: number
  leaseMs: number
  /** Print every line of every replica. */
  verbose: boolean
}

/** @throws Error that names the argument. */
export function readSettings(args: readonly string[]): DemoSettings {
  const settings: DemoSettings = {
    replay: false,
    inProcess: false,
    port: 3000,
    leaseMs: 5000,
    verbose: false,
  }
  for (const arg of args) {
    const [name, value] = arg.split('=')
    if (name === '--replay') settings.replay = true
    else if (name === '--in-process') settings.inProcess = true
    else if (name === '--verbose') settings.verbose = true
    else if (name === '--port') settings.port = numberOf(arg, value, 0, 65_535)
    else if (name === '--lease-ms') settings.leaseMs = numberOf(arg, value, 1000, 60_000)
    else
      throw new Error(
        `Unknown argument ${arg}. Known: --replay, --in-process, --port=N, --lease-ms=N, --verbose.`,
      )
  }
  return settings
}

function numberOf(arg: string, value: string | undefined, least: number, most: number): number {
  const number = Number(value)
  if (value !== undefined && value !== '' && Number.isInteger(number) && number >= least && number <= most)
    return number
  throw new Error(`${arg}: a whole number from ${least} to ${most} is needed.`)
}
