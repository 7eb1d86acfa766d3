/**
 * (i) what a persistent step costs on the stores, turns being in another backend: the opening read (which raises the
 * chat's fence) and the commit (inbound id, checkpoint of 400 bytes, receipt) beside two plain statements of the store's
 * own driver: a SELECT and an UPDATE of a row by its key, autocommit (Redis: GET and SET). A private server each;
 * interleaved rounds; every commit is looked at.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../tools/servers/find.mjs'
import { mariadb } from '../tools/servers/mariadb.mjs'
import { postgres } from '../tools/servers/postgres.mjs'
import { startPrivateServer } from '../tools/servers/private-server.mjs'
import { startRedis } from './private-redis.mjs'
import { chatNames } from './random.mjs'
import { median, spread } from './statistics.mjs'

const CHATS = 2000
const FILLER = 'x'.repeat(230)
const CONNECTIONS = 10

function checkpointOf(revision) {
  return {
    ...{ v: 1, name: 'order', kind: 'flow', step: 'size', visit: 1, state: { filler: FILLER } },
    ...{ wait: { question: 0, sends: 1 }, fingerprint: '0123456789abcdef', revision },
  }
}

/** One persistent step a turn, each under a fence of its own, as turns in another backend make them. */
function storeSide(store) {
  const fences = new Map()
  let messages = 0
  return {
    start: () => store.open(),
    async turn(chat) {
      const fence = (fences.get(chat) ?? 0) + 1
      fences.set(chat, fence)
      const state = await store.openState(chat, fence)
      messages += 1
      const done = await store.commitState(chat, fence, `${fence}#1`, {
        inboundId: `m${messages}`,
        checkpoint: checkpointOf(`${fence}:1`),
        expectedRevision: state.revision,
      })
      if (done.outcome !== 'committed' || done.revision !== `${fence}:1`) {
        throw new Error(`a commit was ${done.outcome}`)
      }
    },
    stop: () => store.close(),
  }
}

async function serverOf(description) {
  const program = findProgram(description.program, description.places)
  if (program === undefined) throw new Error(`no ${description.program} found`)
  return startPrivateServer(description, program)
}

let writes = 0
/** Another one each time: two of the databases notice a row that does not change, and write nothing. */
function nextValue() {
  writes += 1
  return JSON.stringify(checkpointOf(`${writes}:1`))
}
const keys = chatNames(CHATS)

const databases = {
  async postgres() {
    const { PostgresStore } = await import('@botmesh/postgres-store')
    const { default: pg } = await import('pg')
    const server = await serverOf(postgres)
    const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS }).on('error', () => undefined)
    const plain = {
      async start() {
        await pool.query('create table plain (k text primary key, v text not null)')
        await pool.query('insert into plain select unnest($1::text[]), $2', [keys, nextValue()])
      },
      async turn(chat) {
        await pool.query('select v from plain where k = $1', [chat])
        await pool.query('update plain set v = $2 where k = $1', [chat, nextValue()])
      },
      stop: () => pool.end(),
    }
    const store = new PostgresStore({ url: server.url, connections: CONNECTIONS })
    return { sides: [plain, storeSide(store)], stop: () => server.stop() }
  },

  async mariadb() {
    const { MySQLStore } = await import('@botmesh/mysql-store')
    const { createPool } = await import('mysql2/promise')
    const server = await serverOf(mariadb)
    const pool = createPool({ uri: server.url, connectionLimit: CONNECTIONS })
    const plain = {
      async start() {
        await pool.query('create table plain (k varchar(200) primary key, v longtext not null)')
        await pool.query('insert into plain values ?', [keys.map((key) => [key, nextValue()])])
      },
      async turn(chat) {
        await pool.query('select v from plain where k = ?', [chat])
        await pool.query('update plain set v = ? where k = ?', [nextValue(), chat])
      },
      stop: () => pool.end(),
    }
    const store = new MySQLStore({ url: server.url, connections: CONNECTIONS })
    return { sides: [plain, storeSide(store)], stop: () => server.stop() }
  },

  async redis() {
    const { RedisStore } = await import('@botmesh/redis-store')
    const { Redis } = await import('ioredis')
    const server = await startRedis()
    const redis = new Redis(server.port, '127.0.0.1')
    const plain = {
      start: () => redis.mset(keys.flatMap((key) => [key, nextValue()])),
      async turn(chat) {
        await redis.get(chat)
        await redis.set(chat, nextValue())
      },
      stop: () => redis.quit(),
    }
    const store = new RedisStore({ url: `redis://127.0.0.1:${server.port}`, prefix: 'i' })
    return { sides: [plain, storeSide(store)], stop: () => server.stop() }
  },

  'sqlite (synchronous normal)': () => sqlite('normal'),
  'sqlite (synchronous full)': () => sqlite('full'),
}

/** The driver is synchronous; both sides use a write-ahead log and wait for the disk alike. */
async function sqlite(synchronous) {
  const { SQLiteStore } = await import('@botmesh/sqlite-store')
  const { default: Database } = await import('libsql')
  const dir = await mkdtemp(join(tmpdir(), 'botmesh-bench-'))
  const db = new Database(join(dir, 'plain.db'))
  let read
  let write
  const plain = {
    async start() {
      db.exec('pragma journal_mode = wal')
      db.exec(`pragma synchronous = ${synchronous}`)
      db.exec('create table plain (k text primary key, v text not null)')
      const insert = db.prepare('insert into plain values (?, ?)')
      for (const key of keys) insert.run(key, nextValue())
      read = db.prepare('select v from plain where k = ?')
      write = db.prepare('update plain set v = ? where k = ?')
    },
    async turn(chat) {
      read.all(chat)
      write.run(nextValue(), chat)
    },
    stop: async () => db.close(),
  }
  const store = new SQLiteStore({ path: join(dir, 'store.db'), synchronous })
  return {
    sides: [plain, storeSide(store)],
    stop: () => rm(dir, { recursive: true, force: true }),
  }
}

/** Steps a second of one side, and what this process spent on one, in µs. */
async function measure(side, inFlight, ms) {
  const cpu = process.cpuUsage()
  const began = performance.now()
  let steps = 0
  await Promise.all(
    Array.from({ length: inFlight }, async (_, lane) => {
      for (let n = lane; performance.now() - began < ms; n += inFlight) {
        await side.turn(keys[(n * 7919) % CHATS])
        steps += 1
        // A driver that never waits would keep the others, and the clock, from their turn.
        if (steps % 64 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    }),
  )
  const tookMs = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)
  return { rate: (steps / tookMs) * 1000, cpuUs: (user + system) / steps }
}

export async function storeSteps({ record, rounds, ms }) {
  const seen = { 1: [], [CONNECTIONS]: [] }
  for (const [name, start] of Object.entries(databases)) {
    const { sides, stop } = await start()
    try {
      for (const side of sides) await side.start()
      for (const inFlight of [1, CONNECTIONS]) {
        const found = await compare(sides, { inFlight, rounds, ms })
        const rate = (n) => spread(found[n].map((one) => one.rate))
        seen[inFlight].push({ label: `${name}: two plain statements`, ...rate(0) })
        seen[inFlight].push({ label: `${name}: a step`, ours: true, ...rate(1) })
        const cpu = (n) => median(found[n].map((one) => one.cpuUs)).toFixed(0)
        console.log(
          `  ${name}, ${inFlight} in flight: client ${cpu(0)} µs for plain statements, ${cpu(1)} µs for a step; load ${loadavg()[0].toFixed(1)} on ${cpus().length} cores`,
        )
        const ratio = median(found[1].map((one, round) => one.rate / found[0][round].rate))
        record.note(`(i) ${name}, ${inFlight} in flight: step / two plain statements`, ratio)
      }
    } finally {
      for (const side of sides) await side.stop()
      await stop()
    }
  }
  record.figures('one in flight', 'steps/s', seen[1])
  record.figures(`${CONNECTIONS} in flight`, 'steps/s', seen[CONNECTIONS])
}

/** What each side did in each round, after one for warming up. */
async function compare(sides, { inFlight, rounds, ms }) {
  for (const side of sides) await measure(side, inFlight, ms)
  const found = sides.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (const [n, side] of sides.entries()) found[n].push(await measure(side, inFlight, ms))
  }
  return found
}
