/** The code of docs/guides/locks.md, to be compiled and run: a test compares what the guide quotes with this file. */
import type { LockStore, TaskContext } from '@botmesh/core'
import type { Redis } from 'ioredis'
import type { Pool } from 'pg'

// --- holding a lock for as long as the work takes
export async function withLock<T>(
  locks: LockStore,
  key: string,
  work: (fence: number, signal: AbortSignal) => Promise<T>,
  ttlMs = 15_000,
): Promise<T | null> {
  const lock = await locks.acquireLockFenced(key, ttlMs)
  if (lock === null) return null // Somebody else is at it.
  const lost = new AbortController()
  const renewal = setInterval(() => {
    locks.renewLock(key, lock.token, ttlMs).then(
      (kept) => kept || lost.abort(new Error(`The lock "${key}" was lost`)),
      () => undefined, // No answer: the next renewal may get through. If none does, the fence decides.
    )
  }, ttlMs / 3)
  try {
    return await work(lock.fence, lost.signal)
  } finally {
    clearInterval(renewal)
    // What the work came to counts, not whether the store can be reached now: then the lock ends with its TTL.
    await locks.releaseLock(key, lock.token).catch((error: unknown) => console.warn(error))
  }
}
// --- end

// --- SQL
export async function setBalance(db: Pool, account: string, cents: number, fence: number): Promise<boolean> {
  const { rowCount } = await db.query(
    'UPDATE accounts SET cents = $1, fence = $2 WHERE id = $3 AND fence <= $2',
    [cents, fence, account],
  )
  return rowCount === 1 // 0: somebody with a higher fence has written.
}
// --- end

// --- SQL, several statements
export async function closeMonth(db: Pool, month: string, fence: number): Promise<boolean> {
  const connection = await db.connect()
  try {
    await connection.query('BEGIN')
    const { rowCount } = await connection.query(
      `INSERT INTO guards (name, fence) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE guards.fence <= excluded.fence`,
      [`close ${month}`, fence],
    )
    if (rowCount === 1) await connection.query('INSERT INTO closings (month) VALUES ($1)', [month])
    await connection.query(rowCount === 1 ? 'COMMIT' : 'ROLLBACK')
    return rowCount === 1
  } catch (error) {
    await connection.query('ROLLBACK')
    throw error
  } finally {
    connection.release()
  }
}
// --- end

// --- Redis
const SET_FENCED = `
  if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[1]) then return 0 end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
  return 1`

export async function setFenced(redis: Redis, key: string, value: string, fence: number): Promise<boolean> {
  return (await redis.eval(SET_FENCED, 1, key, fence, value)) === 1
}
// --- end

// --- conditional PUT
export async function putFenced(
  url: string,
  body: string,
  fence: number,
  signal: AbortSignal,
): Promise<boolean> {
  const present = await fetch(url, { method: 'HEAD', signal })
  const etag = present.headers.get('etag')
  if (Number(present.headers.get('x-amz-meta-fence') ?? 0) > fence) return false
  const written = await fetch(url, {
    method: 'PUT',
    headers: {
      'x-amz-meta-fence': String(fence),
      ...(etag ? { 'if-match': etag } : { 'if-none-match': '*' }),
    },
    body,
    signal,
  })
  if (written.status === 412 || written.status === 409) return putFenced(url, body, fence, signal)
  if (!written.ok) throw new Error(`PUT ${url} answered ${written.status}`)
  return true
}
// --- end

// --- an API of your own
export async function chargeAll(api: string, task: TaskContext): Promise<void> {
  const answer = await fetch(`${api}/charges`, {
    method: 'POST',
    headers: {
      'x-fence': String(task.fence), // The API keeps the highest one it has seen, and answers 409 to lower ones.
      'idempotency-key': `charges ${task.occurrence.toISOString()}`, // A second attempt is the same request.
    },
    signal: task.signal,
  })
  if (!answer.ok) throw new Error(`The charges were answered ${answer.status}`)
}
// --- end
