/**
 * Connections as Kysely takes them, over a pool of `pg`. Calls have a deadline; a connection that was lost or went
 * silent is thrown away rather than given back; `begin` does not wait for its answer where the connection pipelines.
 */
import { createHash } from 'node:crypto'
import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import type { Pool, PoolClient } from 'pg'
import type { Clock } from '@botmesh/core'

/** A statement gets a name, and is then prepared once a connection, when it has come so often. */
const OFTEN = 3
/** Texts that are counted; statements with lists have many. */
const MOST_TEXTS = 300
/** A pooler gave us a connection that does not know the name, or knows it already. */
const MISNAMED = /^(26000|42P05)$/

/** Names of the statements that come often: the server need not read and plan them each time. */
class StatementNames {
  private readonly counts = new Map<string, number>()
  private readonly names = new Map<string, string>()
  private off = false

  nameOf(text: string): string | undefined {
    if (this.off) return undefined
    const name = this.names.get(text)
    if (name !== undefined || this.names.size >= MOST_TEXTS) return name
    const count = (this.counts.get(text) ?? 0) + 1
    if (count < OFTEN) {
      if (this.counts.size >= MOST_TEXTS) this.counts.clear()
      this.counts.set(text, count)
      return undefined
    }
    this.counts.delete(text)
    // By the text: other stores may share the connections of a pool that was given.
    const made = `botmesh_${createHash('sha1').update(text).digest('hex').slice(0, 20)}`
    this.names.set(text, made)
    return made
  }

  /** There is a pooler in between that hands out connections by the transaction. */
  giveUp(): void {
    this.off = true
  }
}

/** True if it says that a prepared statement cannot be used: it did not run, and may be sent again without a name. */
export function isMisnamed(error: unknown): boolean {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string }
  // A newer release has changed a table.
  return MISNAMED.test(code) || (code === '0A000' && message.includes('cached plan'))
}

/** What a call that got no answer in time rejects with. */
export class SilentConnectionError extends Error {}

export class DeadlinePool implements PostgresPool {
  private readonly known = new WeakMap<PoolClient, DeadlineClient>()
  private readonly names = new StatementNames()

  constructor(
    private readonly pool: Pool,
    private readonly clock: Clock,
    /** After it a call's fate is unknown and it rejects. */
    private readonly timeoutMs: number,
    /** False: the pool was given, and is not ours to end. */
    private readonly own: boolean,
  ) {
    // An idle connection that is lost is replaced; without a listener it would end the process.
    if (own || pool.listenerCount('error') === 0) pool.on('error', () => undefined)
    // From the first moment: between its connection and the one who asked for it, nobody else listens, and a server
    // that ends just then would end this process too.
    pool.on('connect', (client) => client.on('error', () => undefined))
  }

  async connect(): Promise<PostgresPoolClient> {
    const client = await this.lend()
    let wrapped = this.known.get(client)
    if (!wrapped) {
      wrapped = new DeadlineClient(client, this.clock, this.timeoutMs, this.names)
      this.known.set(client, wrapped)
    }
    // Without cursors, which nothing here uses.
    return wrapped as Pick<PostgresPoolClient, 'release'> as PostgresPoolClient
  }

  /** A pool that was given may have no deadline of its own, and one that is ended forgets who waits. */
  private lend(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      let late = false
      const timer = this.clock.setTimeout(() => {
        late = true
        reject(new SilentConnectionError('No connection in time.'))
      }, this.timeoutMs)
      this.pool
        .connect()
        .then((client) => {
          if (late) client.release()
          else resolve(client)
        }, reject)
        .finally(() => timer.cancel())
    })
  }

  async end(): Promise<void> {
    if (this.own) await this.pool.end()
  }
}

export class DeadlineClient {
  private broken: Error | null = null
  private begun: Promise<unknown> | null = null

  constructor(
    readonly client: PoolClient,
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly names: StatementNames,
  ) {
    // While it is lent out nobody else listens, and the calls in flight reject by themselves.
    client.on('error', (error) => {
      this.broken ??= error
    })
  }

  async query<R>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> {
    if (this.broken) throw this.broken
    if (this.client.pipeline && /^(begin|start transaction)/.test(text)) {
      this.begun = this.timed(text, [])
      // Looked at with the next answer.
      this.begun.catch(() => undefined)
      return { command: 'SELECT', rowCount: 0, rows: [] }
    }
    const [result] = await Promise.all([this.timed(text, parameters), this.begun])
    this.begun = null
    return result as PostgresQueryResult<R>
  }

  release(discard = false): void {
    this.begun = null
    this.client.release(discard || this.broken !== null)
  }

  private timed(text: string, parameters: readonly unknown[]) {
    const name = parameters.length > 0 ? this.names.nameOf(text) : undefined
    return new Promise<unknown>((resolve, reject) => {
      const fail = (error: unknown): void => {
        if (name !== undefined && isMisnamed(error)) {
          this.names.giveUp()
          this.broken ??= error as Error
        }
        reject(error)
      }
      const timer = this.clock.setTimeout(() => {
        this.broken ??= new SilentConnectionError('The server did not answer in time.')
        reject(this.broken)
      }, this.timeoutMs)
      this.client
        .query({ text, values: parameters as unknown[], ...(name === undefined ? {} : { name }) })
        .then(resolve, fail)
        .finally(() => timer.cancel())
    })
  }
}
