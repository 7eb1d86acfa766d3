/**
 * Redis with access rules, TLS and passwords of every kind, on one server, a cluster and a Sentinel set; and servers that
 * cannot be used (S3, Z11). The rights are those that the README names: a user with just these can do everything.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { ConfigError, CoordinationUnavailableError } from '@botmesh/core'
import { storeSuite } from '@botmesh/core/testing'
import { Redis } from 'ioredis'
import { startRedisCluster, startRedisSentinels } from '../../../test/support/index.js'
import { RedisCoordinator, RedisStore, type RedisOptions } from '../src/index.js'
import { requireVersion } from '../src/mesh.js'
import { NEVER_LAPSING_LEASE_MS, STORE_GUARANTEES, storeBed } from './beds.js'
import { freePort, startRedis, type PrivateRedis } from './private-redis.js'
import { recordingLogger, shown } from './recording-logger.js'

const README = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const PASSWORD = 'p@ss:w/o#r?d%&ñ €+"'

/** The rules that the README gives, for keys that begin so. */
function rightsOf(stem: string, kind: 'single' | 'cluster'): string[] {
  const block = [...README.matchAll(/```acl\n([\s\S]*?)```/g)][kind === 'single' ? 0 : 1]?.[1] ?? ''
  return block.replaceAll('shop:', stem).split(/\s+/).filter(Boolean)
}

/** Turns, a commit, a push, a log, a lock and a user: what a bot does with its store. */
async function useAll(options: RedisOptions): Promise<void> {
  const store = new RedisStore(options)
  const [a, b] = [0, 1].map(() =>
    store.coordinator({ leaseMs: NEVER_LAPSING_LEASE_MS, processId: randomUUID() }),
  )
  if (!a || !b) throw new Error('unreachable')
  try {
    const heard = new Promise<void>((resolve) => void store.log.subscribe('room', resolve))
    for (const key of ['k', 'l', 'm']) {
      const first = await a.turns.take(key, { read: { journal: true } })
      const second = b.turns.take(key)
      if (first === 'duplicate') throw new Error('duplicate')
      expect(await first.commit({ inboundId: 'm1', marker: null })).toMatchObject({ outcome: 'committed' })
      const turn = await second
      if (turn !== 'duplicate') await turn.release()
    }
    expect(await store.setUserIf('ana', { n: 1 }, null)).not.toBeNull()
    expect((await store.getUser('ana'))?.data).toEqual({ n: 1 })
    expect(await store.acquireLockFenced('lock', 1000)).not.toBeNull()
    expect(await store.outbox.entries('k')).toEqual([])
    expect(await store.journal.stranded(0, 10)).toEqual([])
    expect(await store.journal.deadLetters(10)).toEqual([])
    await store.log.append('room', 'hello')
    await heard
    expect(await store.log.read('room', null)).toMatchObject([{ payload: 'hello' }])
  } finally {
    await Promise.all([a.stop(), b.stop()])
    await store.close()
  }
}

async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('It resolved.')
}

describe('S3: a user with the documented rights and no others', () => {
  let server: PrivateRedis
  const place: RedisOptions = {}
  beforeAll(async () => {
    server = await startRedis()
    await server.admin.acl('SETUSER', 'bot', 'reset', 'on', `>${PASSWORD}`, ...rightsOf('t%3A', 'single'))
    place.url = `redis://bot:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}`
  })
  afterAll(() => server.stop())

  // The suite's prefixes all begin with "t:".
  storeSuite(
    { describe, it, expect },
    {
      name: 'RedisStore with few rights',
      guarantees: STORE_GUARANTEES,
      bed: async () => storeBed(place),
    },
  )

  it('is warned of nothing, and sees no other prefix', async () => {
    const logger = recordingLogger()
    const coordinator = new RedisCoordinator({ ...place, prefix: 't:x', leaseMs: 1000, logger })
    await coordinator.start()
    const turn = await coordinator.turns.take('k')
    if (turn !== 'duplicate') await turn.release()
    await coordinator.stop()
    expect(logger.has('warn', /./)).toBe(false)
    const error = await rejection(new RedisStore({ ...place, prefix: 'other' }).open())
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/NOPERM/)
    expect(error.message).not.toContain(PASSWORD)
  })
})

describe('S3, bad input: a password with special characters', () => {
  it('works in a url, percent-encoded, and in a client’s settings; a bare "%" or "/" is explained', async () => {
    const server = await startRedis('--requirepass', PASSWORD)
    try {
      await useAll({ url: `redis://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}`, prefix: 'a' })
      const client = new Redis({ port: server.port, password: PASSWORD, lazyConnect: true })
      await useAll({ client, prefix: 'shop:eu' })
      client.disconnect()
      for (const bare of ['100%', 'a/b', 'a#b']) {
        const url = `redis://:${bare}@127.0.0.1:${server.port}`
        const make = (): RedisStore => new RedisStore({ url })
        expect(make).toThrow(/percent-encoded/)
        expect(make).not.toThrow(bare)
      }
    } finally {
      await server.stop()
    }
  })
})

describe('TLS', () => {
  let dir: string
  let files: { ca: string; args: string[] }
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'botmesh-tls-'))
    const at = (name: string): string => join(dir, name)
    const openssl = (...args: string[]): void =>
      void execFileSync('openssl', args, { stdio: 'pipe', cwd: dir })
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    openssl(
      'req',
      '-x509',
      ...key,
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-days',
      '2',
      '-subj',
      '/CN=test CA',
    )
    openssl(
      'req',
      ...key,
      '-keyout',
      'server.key',
      '-out',
      'server.csr',
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=IP:127.0.0.1,DNS:localhost',
    )
    openssl(
      'x509',
      '-req',
      '-in',
      'server.csr',
      '-CA',
      'ca.crt',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-copy_extensions',
      'copy',
      '-days',
      '2',
      '-out',
      'server.crt',
    )
    files = {
      ca: readFileSync(at('ca.crt'), 'utf8'),
      args: [
        ...['--tls-cert-file', at('server.crt'), '--tls-key-file', at('server.key')],
        ...['--tls-ca-cert-file', at('ca.crt'), '--tls-auth-clients', 'no'],
      ],
    }
  })
  afterAll(() => rmSync(dir, { recursive: true }))

  it('S3: on one server, by a client’s settings; an unknown authority is refused by name', async () => {
    const tlsPort = await freePort()
    const server = await startRedis('--tls-port', String(tlsPort), ...files.args)
    try {
      const client = new Redis({ host: '127.0.0.1', port: tlsPort, tls: { ca: files.ca }, lazyConnect: true })
      await useAll({ client, prefix: 'tls' })
      client.disconnect()
      const store = new RedisStore({ url: `rediss://127.0.0.1:${tlsPort}`, startTimeoutMs: 500 })
      const error = await rejection(store.open())
      expect(error.message).toContain(`127.0.0.1:${tlsPort}`)
      expect(String(error.cause)).toMatch(/certificate/)
    } finally {
      await server.stop()
    }
  })

  it('S3: on a cluster with few rights, whose nodes speak TLS to each other', async () => {
    const { nodes, addresses } = await startRedisCluster({
      tlsArgs: files.args,
    })
    const tls = { ca: files.ca }
    await Promise.all(
      addresses.map(async (node) => {
        const admin = new Redis({ ...node, tls })
        await admin.acl('SETUSER', 'bot', 'reset', 'on', `>${PASSWORD}`, ...rightsOf('shop:', 'cluster'))
        admin.disconnect()
      }),
    )
    expect(nodes).toHaveLength(6)
    await useAll({ cluster: addresses, username: 'bot', password: PASSWORD, tls, prefix: 'shop', shards: 4 })
  }, 60_000)
})

describe('S3: credentials of a Sentinel set', () => {
  it('of the servers and of the Sentinels are told apart', async () => {
    const set = await startRedisSentinels({ password: PASSWORD, sentinelPassword: 'other one' })
    const settings = { sentinels: set.sentinels, name: set.name, prefix: 'shop', startTimeoutMs: 2000 }
    await useAll({ ...settings, password: PASSWORD, sentinelPassword: 'other one' })
    const logger = recordingLogger()
    const error = await rejection(
      new RedisStore({ ...settings, sentinelPassword: 'other one', logger }).open(),
    )
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toMatch(/user name or password/)
    const wrong = { ...settings, password: 'wr0ng one', sentinelPassword: 'wr0ng one too', logger }
    const refused = await rejection(new RedisStore(wrong).open())
    expect(shown([error, refused]) + logger.text()).not.toMatch(/wr0ng|other one/)
  }, 60_000)
})

describe('servers that cannot be used', () => {
  it('Z11: one that is too old is refused, by layout', () => {
    expect(() => requireVersion('6.0.16', 'single')).toThrow(/Redis 6\.0\.16 is too old.*6\.2 or later/)
    expect(() => requireVersion('6.2.14', 'cluster')).toThrow(/too old.*7\.0 or later for layout 'cluster'/)
    requireVersion('6.2.0', 'single')
    requireVersion('10.0.0', 'cluster')
  })

  it('S3: layout cluster against a server that is in none', async () => {
    const server = await startRedis()
    try {
      const openings = [
        new RedisStore({ url: server.url, layout: 'cluster' }).open(),
        new RedisCoordinator({ cluster: [{ host: '127.0.0.1', port: server.port }] }).start(),
      ]
      for (const error of await Promise.all(openings.map(rejection))) {
        expect(error).toBeInstanceOf(ConfigError)
        expect(error.message).toMatch(
          new RegExp(`"layout" is 'cluster'.*127.0.0.1:${server.port} is not part`),
        )
      }
    } finally {
      await server.stop()
    }
  })

  it('scenario 10: the error names host and port, and no password', async () => {
    const port = await freePort()
    const url = `redis://ana:s3cret@127.0.0.1:${port}`
    const coordinator = new RedisCoordinator({ url, startTimeoutMs: 200, leaseMs: 1000 })
    const store = new RedisStore({ url, startTimeoutMs: 200 })
    const cluster = new RedisStore({ cluster: [{ host: '127.0.0.1', port }], startTimeoutMs: 200 })
    const openings = [coordinator.start(), store.open(), cluster.open()]
    for (const error of await Promise.all(openings.map(rejection))) {
      expect(error.message).toContain(`127.0.0.1:${port}`)
      expect(shown(error)).not.toContain('s3cret')
    }
    await Promise.all([coordinator.stop(), store.close(), cluster.close()])
  })

  it('Z5: one that became a replica takes no writes: calls are repeated, and go on once it is a primary again', async () => {
    const server = await startRedis()
    const other = await startRedis()
    const coordinator = new RedisCoordinator({ url: server.url, leaseMs: 2000 })
    try {
      const held = await coordinator.turns.take('held')
      if (held === 'duplicate') throw new Error('duplicate')
      const waits = coordinator.turns.take('held')
      await server.admin.call('REPLICAOF', '127.0.0.1', String(other.port))
      const error = await rejection(coordinator.turns.take('k', { waitMs: 300 }))
      expect(error).toBeInstanceOf(CoordinationUnavailableError)
      await server.admin.call('REPLICAOF', 'NO', 'ONE')
      const turn = await coordinator.turns.take('k', { waitMs: '10s' })
      if (turn === 'duplicate') throw new Error('duplicate')
      await turn.release()
      await held.release()
      const next = await waits
      if (next === 'duplicate') throw new Error('duplicate')
      expect(next.fence).toBeGreaterThan(held.fence)
    } finally {
      await coordinator.stop()
      await Promise.all([server.stop(), other.stop()])
    }
  })
})
