/** What is checked before anything is done on a server: its version, its kind, and the mesh that lives there (Z11). */
import { ConfigError, StoreError, type Logger } from '@botmesh/core'
import type { ShardKeys } from './keys.js'
import { clusterRefusal, notACluster } from './layout-errors.js'
import type { Line } from './line.js'
import { asConfigError } from './redis-link.js'
import { plainScript } from './scripts.js'

/** Version of the keys and scripts. Replicas of different versions cannot share a prefix. */
export const PROTOCOL = 1

/** Oldest servers: 6.2 has the commands that scripts use, 7.0 channels that belong to a shard. */
const OLDEST = { single: [6, 2], cluster: [7, 0] } as const

export interface Layout {
  readonly layout: 'single' | 'cluster'
  readonly shards: number
}

export interface MeshSettings extends Layout {
  keys: ShardKeys
  windowMs: number
  /** Servers that were looked at already: each is once. */
  checked?: Set<string>
}

/** @throws ConfigError for a server or a mesh that this version cannot work with. */
export async function joinMesh(
  line: Line,
  settings: MeshSettings,
  timeoutMs: number,
  logger: Logger,
): Promise<void> {
  if (!settings.checked?.has(line.place)) await checkServer(line, settings.layout, timeoutMs, logger)
  settings.checked?.add(line.place)
  const { keys, windowMs, layout, shards } = settings
  const args = ['1', keys.holders, keys.base, String(PROTOCOL), layout, String(shards), String(windowMs)]
  const reply = (await line.eval(plainScript('join-mesh'), args, timeoutMs).catch((error: unknown) => {
    throw refusalBehind(error) ?? (layout === 'single' ? clusterBehind(error) : null) ?? error
  })) as string[]
  if (reply[0] === 'ok') return
  const [, field = '', theirs = ''] = reply
  throw differs(field, theirs, settings)
}

/** @throws ConfigError for a window that ends before receipts of commits may. */
export function requireWindow(windowMs: number, leaseMs: number): void {
  if (windowMs >= 2 * leaseMs) return
  const accepted = `at least ${2 * leaseMs} ms`
  throw new ConfigError(
    `Option "dedupeMs" is ${windowMs}; it must be at least twice leaseMs (${2 * leaseMs} ms), because receipts of commits are kept that long.`,
    { option: 'dedupeMs', value: windowMs, accepted },
  )
}

/** The refusal that an "unreachable" hides, if one does. */
export function refusalBehind(error: unknown): ConfigError | null {
  if (error instanceof ConfigError) return error
  const cause = error instanceof Error ? error.cause : undefined
  return cause === undefined ? asConfigError(error) : (asConfigError(cause) ?? null)
}

/** A user who may not call INFO learns it in this way. */
function clusterBehind(error: unknown): ConfigError | null {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && /^(?:MOVED|CROSSSLOT|CLUSTERDOWN)/.test(cause.message)
    ? clusterRefusal()
    : null
}

function differs(field: string, theirs: string, settings: MeshSettings): ConfigError {
  if (field === 'protocol') {
    return new ConfigError(
      `The replicas under this prefix keep their keys by protocol ${theirs}, this one by ${PROTOCOL}: use the same version of Botmesh, or another prefix.`,
      { option: 'prefix', accepted: `a prefix whose mesh speaks protocol ${PROTOCOL}` },
    )
  }
  if (field === 'windowMs') {
    return new ConfigError(
      `Option "dedupeMs" is ${settings.windowMs}, but replicas that are running under this prefix use ${theirs}: give all the same, or stop them first.`,
      { option: 'dedupeMs', accepted: theirs },
    )
  }
  const option = field === 'shards' ? 'shards' : 'layout'
  const ours = field === 'shards' ? settings.shards : settings.layout
  return new ConfigError(
    `Option "${option}" is ${ours}, but what is stored under this prefix is laid out with ${theirs}: nothing of it would be found. Give all replicas ${option}: ${theirs}, or use another prefix.`,
    { option, value: ours, accepted: theirs },
  )
}

async function checkServer(
  line: Line,
  layout: Layout['layout'],
  timeoutMs: number,
  logger: Logger,
): Promise<void> {
  const info = await readInfo(line, timeoutMs, logger)
  if (info === null) return
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const inCluster = field('cluster_enabled')
  if (layout === 'single' && inCluster === '1') throw clusterRefusal()
  if (layout === 'cluster' && inCluster === '0') throw notACluster(line.place)
  const version = field('redis_version')
  if (version !== undefined) requireVersion(version, layout)
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    logger.warn(
      { policy },
      'Redis may evict keys of turns and conversations when memory is short: set maxmemory-policy to noeviction',
    )
  }
}

/** @returns null for a user without INFO, which is no mistake: what it would have told stays unchecked. */
async function readInfo(line: Line, timeoutMs: number, logger: Logger): Promise<string | null> {
  try {
    return String(await line.call('info', [], timeoutMs))
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined
    if (cause instanceof Error && cause.message.startsWith('NOPERM')) {
      logger.debug({}, 'this user may not call INFO: version and eviction policy of Redis are not checked')
      return null
    }
    const refusal = refusalBehind(error)
    if (refusal) throw refusal
    throw new StoreError(
      `Redis at ${line.place} did not answer INFO.`,
      { store: 'redis', operation: 'open' },
      { cause: error, retryable: true },
    )
  }
}

/** @throws ConfigError for a server that is too old for this layout. */
export function requireVersion(version: string, layout: Layout['layout']): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldMajor, oldMinor] = OLDEST[layout]
  if (major > oldMajor || (major === oldMajor && minor >= oldMinor)) return
  const accepted = `Redis ${oldMajor}.${oldMinor} or later`
  const purpose = layout === 'cluster' ? " for layout 'cluster'" : ''
  throw new ConfigError(`Redis ${version} is too old: Botmesh needs ${accepted}${purpose}.`, {
    option: 'url',
    value: version,
    accepted,
  })
}
