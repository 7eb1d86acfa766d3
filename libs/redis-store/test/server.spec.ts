/** What a real server does to us: wrong credentials, denied commands, a cluster, other meshes, flushes, silence. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import {
  ConfigError,
  CoordinationUnavailableError,
  StoreError,
  silentLogger,
  systemClock,
  type Turn,
} from '@botmesh/core'
import { testCheckpoint } from '@botmesh/core/testing'
import { Redis } from 'ioredis'
import { RedisCoordinator, RedisStore, type RedisCoordinatorOptions } from '../src/index.js'
import { ShardedPlace } from '../src/layout.js'
import { readPlace } from '../src/redis-options.js'
import { freePort, startRedis, type PrivateRedis } from './private-redis.js'
import { recordingLogger, shown } from './recording-logger.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis('--maxmemory-policy', 'allkeys-lru')
})
afterAll(() => server.stop())

let prefixes = 0
const fresh = (): string => `server:${(prefixes += 1)}`

async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('It resolved.')
}

async function withCoordinator(
  options: Partial<RedisCoordinatorOptions>,
  use: (coordinator: RedisCoordinator) => Promise<void>,
): Promise<void> {
  const place = options.client ? {} : { url: server.url }
  const coordinator = new RedisCoordinator({ ...place, prefix: fresh(), leaseMs: 1000, ...options })
  try {
    await use(coordinator)
  } finally {
    await coordinator.stop()
  }
}

async function take(coordinator: RedisCoordinator, key = 'k'): Promise<Turn> {
  const turn = await coordinator.turns.take(key, { waitMs: '10s' })
  if (turn === 'duplicate') throw new Error('duplicate')
  return turn
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 10_000
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error('It never came true.')
    await sleep(5)
  }
}

describe('wrong server, wrong user', () => {
  it('S3, bad input: a wrong password is a ConfigError at once, without the password', async () => {
    await server.admin.acl('SETUSER', 'ana', 'on', '>right', '~*', '&*', '+@all')
    const url = `redis://ana:wr0ng@127.0.0.1:${server.port}`
    const logger = recordingLogger()
    const began = performance.now()
    const coordinator = new RedisCoordinator({ url, logger })
    const store = new RedisStore({ url, logger })
    for (const error of [await rejection(coordinator.start()), await rejection(store.open())]) {
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(/refused the user name or password/)
      expect(shown(error)).not.toContain('wr0ng')
    }
    expect(performance.now() - began).toBeLessThan(2000)
    expect(logger.text()).not.toContain('wr0ng')
    await coordinator.stop()
  })

  it('secrets: what is reported while a password is refused later shows neither it nor what was sent', async () => {
    await server.admin.acl('SETUSER', 'eva', 'on', '>s3cret', '~*', '&*', '+@all')
    const url = `redis://eva:s3cret@127.0.0.1:${server.port}`
    const logger = recordingLogger()
    await withCoordinator({ url, logger, prefix: fresh(), leaseMs: 1000 }, async (coordinator) => {
      await (await take(coordinator)).release()
      await server.admin.acl('SETUSER', 'eva', '<s3cret', '>other')
      await server.admin.call('CLIENT', 'KILL', 'USER', 'eva')
      await until(() => logger.has('debug', /connection to Redis failed/))
      const error = await rejection(coordinator.turns.take('private chat', { waitMs: 100 }))
      expect(error).toBeInstanceOf(CoordinationUnavailableError)
      expect(shown(error)).not.toContain('s3cret')
      await server.admin.acl('SETUSER', 'eva', '>s3cret')
      await (await take(coordinator)).release()
      expect(logger.text()).not.toContain('s3cret')
    })
  })

  it('S3, bad input: a user who may not run scripts is told what is missing', async () => {
    await server.admin.acl('SETUSER', 'reader', 'on', '>pass', '~*', '&*', '+@read', '+info', '+@connection')
    await withCoordinator({ url: `redis://reader:pass@127.0.0.1:${server.port}` }, async (coordinator) => {
      const error = await rejection(coordinator.start())
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(/NOPERM/)
    })
  })

  it('Z1: where the channel is denied a warning says so, and hand-offs are polled', async () => {
    await server.admin.acl('SETUSER', 'deaf', 'on', '>pass', '~*', 'resetchannels', '+@all')
    const url = `redis://deaf:pass@127.0.0.1:${server.port}`
    const prefix = fresh()
    const logger = recordingLogger()
    await withCoordinator({ url, prefix, logger }, async (a) => {
      await withCoordinator({ url, prefix, logger }, async (b) => {
        const first = await take(a)
        const second = take(b)
        await sleep(50)
        const began = performance.now()
        await first.release()
        await (await second).release()
        expect(performance.now() - began).toBeLessThan(400)
        await until(() => logger.has('warn', /channel/))
      })
    })
  })

  it('S3: a server that is part of a cluster is refused, and the message says which layout that is about', async () => {
    const cluster = await startRedis('--cluster-enabled', 'yes')
    try {
      for (const opening of [
        new RedisCoordinator({ url: cluster.url }).start(),
        new RedisStore({ url: cluster.url }).open(),
      ]) {
        const error = await rejection(opening)
        expect(error).toBeInstanceOf(ConfigError)
        expect(error.message).toMatch(/Redis Cluster.*layout/)
      }
    } finally {
      await cluster.stop()
    }
  })

  it('scenario 10: an unreachable server is tried until startTimeoutMs', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`
    const coordinator = new RedisCoordinator({ url, startTimeoutMs: 300 })
    const error = await rejection(coordinator.start())
    expect(error).toBeInstanceOf(CoordinationUnavailableError)
    await coordinator.stop()
    const store = new RedisStore({ url, startTimeoutMs: 200 })
    const told = await rejection(store.getCheckpoint('k'))
    expect(told).toBeInstanceOf(StoreError)
    expect((told as StoreError).retryable).toBe(true)
    await store.close()
  })

  it('S3, bad input: a server that appears while it is being tried is used', async () => {
    const late = await startRedis()
    await late.kill()
    const coordinator = new RedisCoordinator({ url: late.url, leaseMs: 1000 })
    const started = coordinator.start()
    await sleep(200)
    await late.restart()
    await started
    await (await take(coordinator)).release()
    await coordinator.stop()
    await late.stop()
  })
})

describe('scenario 10: a server that is not ready yet', () => {
  it('is tried again until it is', async () => {
    const late = await startRedis('--replica-serve-stale-data', 'no')
    await late.admin.replicaof('127.0.0.1', String(await freePort()))
    const store = new RedisStore({ url: late.url, prefix: fresh() })
    const opened = store.open()
    await until(async () => /errorstat_MASTERDOWN:count=[^0]/.test(await late.admin.info('errorstats')))
    await late.admin.replicaof('NO', 'ONE')
    await opened
    expect(await store.getCheckpoint('k')).toBeNull()
    await store.close()
    await late.stop()
  })
})

describe('S1: a store that is closed while it tries', () => {
  it('rejects at once, can be opened again, and then is not held up by what was tried before', async () => {
    const late = await startRedis('--replica-serve-stale-data', 'no')
    await late.admin.replicaof('127.0.0.1', String(await freePort()))
    const logger = recordingLogger()
    const store = new RedisStore({ url: late.url, prefix: fresh(), logger })
    const first = rejection(store.open())
    await until(async () => /errorstat_MASTERDOWN:count=[^0]/.test(await late.admin.info('errorstats')))
    await store.close()
    const again = store.open()
    expect(await first).toBeInstanceOf(StoreError)
    await late.admin.replicaof('NO', 'ONE')
    await again
    expect(await store.getCheckpoint('k')).toBeNull()
    expect(logger.has('warn', /Redis is not ready yet/)).toBe(true)
    await store.close()
    await late.stop()
  })
})

describe('L2: a process that stood still', () => {
  it('finds the answers that came meanwhile', async () => {
    const place = new ShardedPlace(readPlace('RedisStore', { url: server.url, prefix: fresh() }, 60_000))
    const line = place.line({ clock: systemClock, logger: silentLogger }, { role: 'store', slot: 0 })
    await line.open(10_000)
    const pid = /process_id:(\d+)/.exec(await server.admin.info('server'))?.[1]
    server.signal('SIGSTOP')
    const answer = line.call('ping', [], 300)
    // Sent by then; what is due after the pause comes before what was received in it.
    await new Promise((resolve) => setImmediate(resolve))
    const answering = spawn('sh', ['-c', `sleep 0.1; kill -CONT ${pid}`])
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)
    expect(await answer).toBe('PONG')
    expect(answering.exitCode ?? (await once(answering, 'exit'))[0]).toBe(0)
    line.close()
  })
})

describe('Z11: meshes', () => {
  it('warns where Redis may evict keys', async () => {
    const logger = recordingLogger()
    await withCoordinator({ logger }, (coordinator) => coordinator.start())
    expect(logger.has('warn', /maxmemory-policy/)).toBe(true)
  })

  it('refuses to join a mesh of another protocol', async () => {
    const prefix = fresh()
    await withCoordinator({ prefix }, (coordinator) => coordinator.start())
    await server.admin.hset(`${encodeURIComponent(prefix)}:{0}:mesh`, 'protocol', '99')
    await withCoordinator({ prefix }, async (coordinator) => {
      const error = await rejection(coordinator.start())
      expect(error).toBeInstanceOf(ConfigError)
      expect(error.message).toMatch(/protocol 99, this one by 1/)
    })
  })

  it('refuses another dedupeMs while replicas with the first one live', async () => {
    const prefix = fresh()
    await withCoordinator({ prefix, dedupeMs: '1h' }, async (first) => {
      await first.start()
      await withCoordinator({ prefix, dedupeMs: '2h' }, async (second) => {
        expect((await rejection(second.start())).message).toMatch(/"dedupeMs" is 7200000.*3600000/)
      })
    })
    await withCoordinator({ prefix, dedupeMs: '2h' }, (alone) => alone.start())
  })

  it('scenario 12: two processes with one replicaId both work, and a warning says so', async () => {
    const prefix = fresh()
    const loggers = [recordingLogger(), recordingLogger()]
    const same = { prefix, replicaId: 'twin' }
    await withCoordinator({ ...same, processId: 'p1', logger: loggers[0] }, async (a) => {
      await withCoordinator({ ...same, processId: 'p2', logger: loggers[1] }, async (b) => {
        await Promise.all([a.start(), b.start()])
        expect(a.incarnation).not.toBe(b.incarnation)
        const [first, second] = [await take(a, 'x'), await take(b, 'y')]
        await until(() => loggers.some((logger) => logger.has('warn', /replicaId/)))
        await Promise.all([first.release(), second.release()])
      })
    })
  })
})

describe('a server with moods', () => {
  it('goes on after SCRIPT FLUSH', async () => {
    await withCoordinator({}, async (coordinator) => {
      await (await take(coordinator)).release()
      await server.admin.script('FLUSH')
      await (await take(coordinator)).release()
    })
  })

  it('S3: one that is full is said to be full, not away, and works again when it has room', async () => {
    const full = await startRedis('--maxmemory-policy', 'noeviction')
    const store = new RedisStore({ url: full.url, prefix: fresh() })
    try {
      await store.setCheckpoint('k', testCheckpoint('1:1'))
      await full.admin.config('SET', 'maxmemory', '1')
      for (const refused of [
        store.setCheckpoint('k', testCheckpoint('1:2')),
        store.acquireLockFenced('job', 1000),
      ]) {
        const error = await rejection(refused)
        expect(error).toBeInstanceOf(StoreError)
        expect((error as StoreError).retryable).toBe(true)
        expect(error.message).toMatch(/refuses .* for now: its memory is full \(OOM\)/)
      }
      await full.admin.config('SET', 'maxmemory', '0')
      expect(await store.acquireLockFenced('job', 1000)).not.toBeNull()
      expect((await store.getCheckpoint('k'))?.revision).toBe('1:1')
    } finally {
      await store.close()
      await full.stop()
    }
  })

  it('C2: the client’s settings are used, the client itself is left alone', async () => {
    const client = new Redis(server.url, { keyPrefix: 'mine:', db: 3 })
    await client.set('a', '1')
    await withCoordinator({ client }, async (coordinator) => {
      await (await take(coordinator)).release()
    })
    const store = new RedisStore({ client, prefix: 'in-db-3' })
    await store.touchChat('k', 'm', 1)
    await store.close()
    expect(await client.get('a')).toBe('1')
    expect(client.status).toBe('ready')
    expect((await client.keys('in-db-3:*')).length).toBeGreaterThan(0)
    await client.quit()
  })

  it('leaves no connection behind', async () => {
    const own = async (): Promise<number> =>
      String(await server.admin.client('LIST'))
        .split('\n')
        .filter((line) => line.includes('name=botmesh-')).length
    await until(async () => (await own()) === 0)
    const store = new RedisStore({ url: server.url, prefix: fresh() })
    const end = await store.log.subscribe('room', () => undefined)
    const coordinator = store.coordinator({ leaseMs: 1000 })
    await (await take(coordinator)).release()
    expect(await own()).toBe(5)
    await end()
    await coordinator.stop()
    await store.close()
    await until(async () => (await own()) === 0)
  })

  it('scenario 10, L2: a server that stops answering loses us our turns, not the process; then all goes on', async () => {
    const moody = await startRedis()
    try {
      const lost: string[] = []
      await withCoordinator({ url: moody.url }, async (coordinator) => {
        coordinator.onLost(({ key, reason }) => lost.push(`${key} ${reason}`))
        const turn = await take(coordinator)
        const before = coordinator.incarnation
        moody.signal('SIGSTOP')
        const began = performance.now()
        await new Promise((resolve) => turn.signal.addEventListener('abort', resolve))
        expect(performance.now() - began).toBeLessThan(1050)
        expect(lost).toEqual(['k frozen'])
        const error = await rejection(coordinator.turns.take('other', { waitMs: 300 }))
        expect(error).toBeInstanceOf(CoordinationUnavailableError)
        expect(coordinator.status.status).toBe('unreachable')
        moody.signal('SIGCONT')
        const next = await take(coordinator)
        expect(next.fence).toBeGreaterThan(turn.fence)
        expect(coordinator.incarnation).not.toBe(before)
        await next.release()
      })
    } finally {
      await moody.stop()
    }
  })

  it('scenario 9, Z5: after a restart that lost everything fences are higher, also than a clock that stepped back', async () => {
    const moody = await startRedis()
    try {
      await withCoordinator({ url: moody.url }, async (coordinator) => {
        const ahead = Date.now() * 1000 + 3_600_000_000
        await (await take(coordinator)).release()
        const [, base] = await Promise.all([coordinator.start(), moody.admin.keys('*holders')])
        // As if the fences so far had been given by a clock an hour ahead.
        await moody.admin.hset(base[0] ?? '', ' floor', String(ahead))
        const turn = await take(coordinator)
        expect(turn.fence).toBeGreaterThan(ahead)
        await moody.restart()
        const next = await take(coordinator)
        expect(next.fence).toBeGreaterThan(turn.fence)
        await next.release()
      })
    } finally {
      await moody.stop()
    }
  })
})
