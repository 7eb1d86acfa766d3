/**
 * Connections as Kysely takes them, over a pool of `mysql2`. Calls have a deadline; a connection that was lost or went
 * silent is thrown away rather than given back. Connections of our own are READ COMMITTED and strict.
 */
import type { MysqlPool, MysqlPoolConnection } from 'kysely'
import type { Pool, PoolConnection } from 'mysql2'
import type { Clock } from '@botmesh/core'

/** What a call that got no answer in time rejects with. */
export class SilentConnectionError extends Error {}

type Answer = (error: unknown, result: unknown) => void

/** READ COMMITTED: a commit sees what the former holder of a row wrote. No rewriting of what does not fit. */
const SETTINGS =
  "set session transaction isolation level read committed, session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
const SESSION = SETTINGS.split(', session ').map((one, n) => (n === 0 ? one : `set session ${one}`))

export interface DeadlinePoolOptions {
  clock: Clock
  /** After it a call's fate is unknown and it rejects. */
  timeoutMs: number
  /** False: the pool was given, its settings stay, and it is not ours to end. */
  own: boolean
}

export class DeadlinePool implements MysqlPool {
  private readonly known = new WeakMap<PoolConnection, DeadlineConnection>()

  constructor(
    private readonly pool: Pool,
    private readonly options: DeadlinePoolOptions,
  ) {}

  getConnection(answer: (error: unknown, connection: MysqlPoolConnection) => void): void {
    // Kysely looks at the connection only where there is no error.
    const nothing = undefined as unknown as MysqlPoolConnection
    this.connect().then(
      (connection) => answer(null, connection as Pick<MysqlPoolConnection, 'release'> as MysqlPoolConnection),
      (error: unknown) => answer(error ?? new Error('No connection.'), nothing),
    )
  }

  private async connect(): Promise<DeadlineConnection> {
    const raw = await this.lend()
    const known = this.known.get(raw)
    if (known) return known
    const made = new DeadlineConnection(raw, this.options)
    this.known.set(raw, made)
    if (!this.options.own) return made
    try {
      for (const statement of SESSION) await made.run(statement)
      return made
    } catch (error) {
      made.discard()
      throw error
    }
  }

  private lend(): Promise<PoolConnection> {
    const { clock, timeoutMs } = this.options
    return new Promise((resolve, reject) => {
      let late = false
      const timer = clock.setTimeout(() => {
        late = true
        reject(new SilentConnectionError('No connection in time.'))
      }, timeoutMs)
      this.pool.getConnection((error, connection) => {
        timer.cancel()
        if (error) reject(error)
        else if (late) connection.release()
        else resolve(connection)
      })
    })
  }

  end(answer: (error: unknown) => void): void {
    if (this.options.own) this.pool.end(answer)
    else answer(null)
  }
}

class DeadlineConnection {
  private broken: Error | null = null

  constructor(
    private readonly raw: PoolConnection,
    private readonly options: DeadlinePoolOptions,
  ) {
    // While it is lent out nobody else listens, and the calls in flight reject by themselves.
    raw.on('error', (error: Error) => {
      this.broken ??= error
    })
  }

  query(text: string, parameters: unknown[], answer: Answer): void {
    if (this.broken) return answer(this.broken, undefined)
    let answered = false
    const once: Answer = (error, result) => {
      if (answered) return
      answered = true
      timer.cancel()
      if (isFatal(error)) this.broken ??= error
      answer(error, result)
    }
    const timer = this.options.clock.setTimeout(() => {
      this.broken ??= new SilentConnectionError('The server did not answer in time.')
      once(this.broken, undefined)
    }, this.options.timeoutMs)
    this.raw.query(text, parameters, once)
  }

  run(text: string): Promise<void> {
    return new Promise((resolve, reject) =>
      this.query(text, [], (error) => (error === null || error === undefined ? resolve() : reject(error))),
    )
  }

  release(): void {
    if (this.broken) this.raw.destroy()
    else this.raw.release()
  }

  discard(): void {
    this.raw.destroy()
  }
}

/** After such an error the connection is of no use. */
function isFatal(error: unknown): error is Error {
  return typeof error === 'object' && error !== null && 'fatal' in error && error.fatal === true
}
