/** Every SQL store on a server: cut off, silent, killed; what it refuses at start; replicas that start together. */
import { ConfigError, StoreError, type Logger } from '@botmesh/core'
import {
  cutSuite,
  rejection,
  testCheckpoint,
  testMessage,
  type CutFixture,
  type CutLine,
  type TestApi,
} from '@botmesh/core/testing'
import { SCHEMA_VERSION } from '../migrations.js'
import type { ServerOptions } from '../server-options.js'
import type { SqlStore } from '../sql-store.js'

/** Options as a caller without types may give them. */
type Options = Omit<ServerOptions<unknown>, 'prefix'> & { prefix?: unknown; [other: string]: unknown }

/** That start together. */
const PROCESSES = 4

export interface Login {
  user: string
  password: string
  database?: string
  port?: number
}

export interface ServerFixture {
  name: string
  kind: string
  title: string
  make: (options: Options) => SqlStore
  freshPrefix: () => string
  freePort: () => Promise<number>
  /** Of this server, its first database and a user who may do everything, unless the login says otherwise. */
  url: (login?: Partial<Login>) => string
  /** What no message may show; a password with characters that URLs escape. */
  secret: string
  /** URLs that are refused, and what is said. */
  refusedUrls: readonly (readonly [url: string, said: RegExp])[]
  /** A user who may create nothing, with `secret` as the password; what is said of it; and how it gets the rest. */
  limited: { login: Login; said: RegExp; grant(): Promise<void> }
  /** The owner of the database in `limited.login`. */
  owner: Partial<Login>
  /** To this server. */
  startLine: () => Promise<CutLine & { url: string; stop(): Promise<void> }>
  /** Kills the server and starts it again, its data kept. */
  restart: () => Promise<void>
  pass: (ms: number) => Promise<void>
  /** Runs a statement beside the stores, as an administrator would. */
  execute: (statement: string) => Promise<Record<string, unknown>[]>
  /** Starts processes that each open a store and write a checkpoint for a chat of their own, `chat <n>`. */
  startReplicas: (url: string, prefix: string, count: number) => Promise<void>
}

export function serverSuite(api: TestApi, fixture: ServerFixture): void {
  cutSuite(api, { name: fixture.name, bed: () => cutBed(fixture) })
  api.describe(`${fixture.name}, S1: bad input, what is refused at start`, () => {
    optionTests(api, fixture)
    serverTests(api, fixture)
  })
  api.describe(`${fixture.name}: replicas`, () => replicaTests(api, fixture))
}

function reasonOf(make: () => unknown): ConfigError {
  try {
    make()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('Nothing was refused.')
}

function optionTests({ it, expect }: TestApi, { name, make, url, secret, refusedUrls }: ServerFixture): void {
  it('options that are unknown, missing or impossible, without the URL in the message', () => {
    const reason = (options: Options): ConfigError => reasonOf(() => make(options))
    const good = url()
    const said: [Options, RegExp][] = [
      [{ ulr: 'x' }, /no option "ulr"; did you mean "url"/],
      [{ url: undefined }, new RegExp(`"url" of ${name} is undefined`)],
      [{ url: '' }, /is empty/],
      [{ url: `no url ${secret}` }, /cannot be read as a URL/],
      [{ pool: {} }, /is not a pool of/],
      [{ pool: 'a pool' }, /is not a pool of/],
      ...refusedUrls.map(([one, what]): [Options, RegExp] => [{ url: one }, what]),
    ]
    for (const [options, what] of said) {
      const { message } = reason(options)
      expect(what.test(message) ? '' : message).toBe('')
      expect(message.includes(secret)).toBe(false)
    }
    const culprits: [string, Options][] = [
      ['pool', { url: good, pool: {} }],
      ['connections', { url: good, connections: 0 }],
      ['callTimeoutMs', { url: good, callTimeoutMs: '1ms' }],
      ['prefix', { url: good, prefix: 'a b' }],
    ]
    for (const [option, options] of culprits) expect(reason(options).details.option).toBe(option)
    return Promise.resolve()
  })
}

async function refusal(store: SqlStore): Promise<Error> {
  const error = await rejection(store.open())
  await store.close()
  if (error instanceof Error) return error
  throw new Error('Nothing was refused.')
}

function serverTests({ it, expect }: TestApi, fixture: ServerFixture): void {
  const { make, url, freshPrefix, secret, limited, owner } = fixture

  it('a wrong password, at once, naming no secret', async () => {
    const began = performance.now()
    const error = await refusal(make({ url: url({ ...limited.login, password: 'geheim' }) }))
    expect(error instanceof ConfigError).toBe(true)
    const said = /127\.0\.0\.1:\d+\/\w+: the user or its password is not accepted/
    expect(said.test(error.message) ? '' : error.message).toBe('')
    const shown = JSON.stringify([error.message, error.cause, (error as ConfigError).details])
    expect(shown.includes('geheim')).toBe(false)
    expect(performance.now() - began).toBeLessThan(5000)
  })

  it('a database that is not there', async () => {
    const error = await refusal(make({ url: url({ database: 'nowhere' }) }))
    expect(error instanceof ConfigError).toBe(true)
    expect(/there is no such database/.test(error.message)).toBe(true)
  })

  it('missing rights to create tables; where they are up to date none are needed', async () => {
    const prefix = freshPrefix()
    const error = await refusal(make({ url: url(limited.login), prefix }))
    expect(error instanceof ConfigError).toBe(true)
    expect(limited.said.test(error.message) ? '' : error.message).toBe('')
    const first = make({ url: url(owner), prefix })
    await first.open()
    await limited.grant()
    const store = make({ url: url(limited.login), prefix })
    await store.setCheckpoint('k', testCheckpoint('1:1'))
    expect(await store.journal.record('k', testMessage('m'))).toBe('recorded')
    expect((await first.getCheckpoint('k'))?.revision).toBe('1:1')
    await Promise.all([store.close(), first.close()])
  })

  it('a server that cannot be reached: tried until startTimeoutMs, then a retryable error', async () => {
    const lines: string[] = []
    const note = (_: object, text: string) => void lines.push(text)
    const logger: Logger = { debug: note, info: note, warn: note, error: note }
    const nobody = url({ user: 'u', password: secret, port: await fixture.freePort() })
    const error = await refusal(make({ url: nobody, startTimeoutMs: 400, logger }))
    expect(error instanceof StoreError).toBe(true)
    const details = { store: fixture.kind, operation: 'open' }
    expect(error).toMatchObject({ retryable: true, details })
    expect(lines).toEqual([`${fixture.title} cannot be reached yet`])
  })
}

function replicaTests(
  { it, expect }: TestApi,
  { make, url, freshPrefix, startReplicas, execute }: ServerFixture,
): void {
  it('S1: processes that start together migrate once, and all of them work', async () => {
    const prefix = freshPrefix()
    await startReplicas(url(), prefix, PROCESSES)
    const store = make({ url: url(), prefix })
    for (let n = 0; n < PROCESSES; n += 1)
      expect((await store.getCheckpoint(`chat ${n}`))?.revision).toBe('1:1')
    await store.close()
    const rows = await execute(`select version from ${prefix}_migrations order by version`)
    const versions = Array.from({ length: SCHEMA_VERSION }, (_, n) => n + 1)
    expect(rows.map(({ version }) => Number(version))).toEqual(versions)
  })
}

/** Stores of one prefix, closed together. */
export function storesOf<Of extends object, Store extends SqlStore>(
  make: (options: Of) => Store,
  common: Of,
): { store(options?: Partial<Of>): Store; close(): Promise<void> } {
  const stores: Store[] = []
  return {
    store: (options = {}) => {
      const one = make({ ...common, ...options })
      stores.push(one)
      return one
    },
    close: async () => {
      await Promise.all(stores.map((one) => one.close()))
    },
  }
}

/** For `cutSuite`: stores through a line that goes wrong on command, and straight ones. */
async function cutBed({ make, url, freshPrefix, startLine, restart, pass }: ServerFixture): CutBed {
  const line = await startLine()
  const common = { prefix: freshPrefix(), connections: 4, callTimeoutMs: 1000 }
  const stores = storesOf<Options, SqlStore>(make, common)
  return {
    store: (options = {}) => stores.store({ url: line.url, ...options }),
    witness: () => stores.store({ url: url() }),
    ...{ line, restart, pass },
    close: async () => {
      await stores.close()
      await line.stop()
    },
  }
}

type CutBed = ReturnType<CutFixture['bed']>

/** All of them: turns, which are in another backend, excepted. */
export const SQL_GUARANTEES = {
  conditional: true,
  state: true,
  journal: true,
  outbox: true,
  log: true,
  locks: true,
  coordinator: false,
  timers: true,
} as const
