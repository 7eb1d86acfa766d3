/**
 * Connections as Kysely takes them, over a pool of `pg`. Calls have a deadline; a connection that was lost or went
 * silent is thrown away rather than given back; `begin` does not wait for its answer where the connection pipelines.
 */
import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import type { Pool, PoolClient } from 'pg'
import type { Clock } from '@botmesh/core'

/** What a call that got no answer in time rejects with. */
export class SilentConnectionError extends Error {}

export class DeadlinePool implements PostgresPool {
  private readonly known = new WeakMap<PoolClient, DeadlineClient>()

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
    const client = await this.pool.connect()
    let wrapped = this.known.get(client)
    if (!wrapped) {
      wrapped = new DeadlineClient(client, this.clock, this.timeoutMs)
      this.known.set(client, wrapped)
    }
    // Without cursors, which nothing here uses.
    return wrapped as Pick<PostgresPoolClient, 'release'> as PostgresPoolClient
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
    return new Promise<unknown>((resolve, reject) => {
      const timer = this.clock.setTimeout(() => {
        this.broken ??= new SilentConnectionError('The server did not answer in time.')
        reject(this.broken)
      }, this.timeoutMs)
      this.client
        .query(text, [...parameters])
        .then(resolve, reject)
        .finally(() => timer.cancel())
    })
  }
}
