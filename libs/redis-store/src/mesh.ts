/** What is checked before anything is done on a server: its version, its kind, and the mesh that lives there (Z11). */
import { ConfigError, StoreError, type Logger } from '@botmesh/core'
import type { ShardKeys } from './keys.js'
import { asConfigError, clusterRefusal, type RedisLink } from './redis-link.js'
import { plainScript } from './scripts.js'

/** Version of the keys and scripts. Replicas of different versions cannot share a prefix. */
export const PROTOCOL = 1

const OLDEST_SERVER = [6, 2] as const

export interface MeshSettings {
  keys: ShardKeys
  windowMs: number
}

/** @throws ConfigError for a server or a mesh that this version cannot work with. */
export async function joinMesh(
  link: RedisLink,
  settings: MeshSettings,
  timeoutMs: number,
  logger: Logger,
): Promise<void> {
  await checkServer(link, logger)
  const { keys, windowMs } = settings
  const args = ['1', keys.holders, keys.base, String(PROTOCOL), 'single', '1', String(windowMs)]
  const reply = (await link.eval(plainScript('join-mesh'), args, timeoutMs).catch((error: unknown) => {
    throw refusalBehind(error) ?? error
  })) as string[]
  if (reply[0] === 'ok') return
  const [, field = '', theirs = ''] = reply
  throw differs(field, theirs, windowMs)
}

/** The refusal that an "unreachable" hides, if one does. */
export function refusalBehind(error: unknown): ConfigError | null {
  if (error instanceof ConfigError) return error
  const cause = error instanceof Error ? error.cause : undefined
  return cause === undefined ? asConfigError(error) : (asConfigError(cause) ?? null)
}

function differs(field: string, theirs: string, windowMs: number): ConfigError {
  if (field === 'protocol') {
    return new ConfigError(
      `The replicas under this prefix keep their keys by protocol ${theirs}, this one by ${PROTOCOL}: use the same version of Botmesh, or another prefix.`,
      { option: 'prefix', accepted: `a prefix whose mesh speaks protocol ${PROTOCOL}` },
    )
  }
  const option = field === 'windowMs' ? 'dedupeMs' : 'layout'
  const ours = field === 'windowMs' ? String(windowMs) : 'single'
  return new ConfigError(
    `Option "${option}" is ${ours}, but replicas that are running under this prefix use ${theirs}: give all the same, or stop them first.`,
    { option, accepted: theirs },
  )
}

async function checkServer(link: RedisLink, logger: Logger): Promise<void> {
  let info: string
  try {
    info = await link.raw.info()
  } catch (error) {
    const refusal = asConfigError(error)
    // A user without INFO is no mistake: what it would have told stays unchecked.
    if (!refusal || !(error instanceof Error && error.message.startsWith('NOPERM'))) {
      if (refusal) throw refusal
      throw new StoreError(
        'Redis did not answer INFO.',
        { store: 'redis', operation: 'open' },
        { cause: error, retryable: true },
      )
    }
    logger.debug({}, 'this user may not call INFO: version and eviction policy of Redis are not checked')
    return
  }
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const version = field('redis_version')
  if (version !== undefined && isOlder(version)) {
    throw new ConfigError(`Redis ${version} is too old: Botmesh needs ${OLDEST_SERVER.join('.')} or later.`, {
      option: 'url',
      value: version,
      accepted: `Redis ${OLDEST_SERVER.join('.')} or later`,
    })
  }
  if (field('cluster_enabled') === '1') throw clusterRefusal()
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    logger.warn(
      { policy },
      'Redis may evict keys of turns and conversations when memory is short: set maxmemory-policy to noeviction',
    )
  }
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < OLDEST_SERVER[0] || (major === OLDEST_SERVER[0] && minor < OLDEST_SERVER[1])
}
