/** LISTEN on a connection of its own; proved by a notification to oneself, since a pooler in between would swallow it. */
import { randomUUID } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'
import type { Clock } from '@botmesh/core'

const PROOF_MS = 3000

/**
 * @param channel an identifier. @param onLost called once, when the connection is gone.
 * @returns how to stop. @throws Error if notifications do not come through.
 */
export async function listen(
  pool: Pool,
  clock: Clock,
  channel: string,
  onTopic: (topic: string) => void,
  onLost: (error: unknown) => void,
): Promise<() => Promise<void>> {
  const client = await pool.connect()
  const nonce = `proof:${randomUUID()}`
  let over = false
  let proved: () => void = () => undefined
  const end = (error: unknown): void => {
    if (over) return
    over = true
    client.removeAllListeners('notification')
    client.release(true)
    if (error !== null) onLost(error)
  }
  client.on('notification', ({ payload = '' }) => {
    if (payload === nonce) proved()
    else if (!payload.startsWith('proof:')) onTopic(payload)
  })
  client.on('error', end)
  client.on('end', () => end(new Error('The connection has ended.')))
  try {
    const proof = new Promise<void>((resolve) => (proved = resolve))
    await client.query(`listen ${client.escapeIdentifier(channel)}`)
    await client.query('select pg_notify($1, $2)', [channel, nonce])
    await within(proof, clock)
  } catch (error) {
    over = true
    client.release(true)
    throw error
  }
  return () => {
    end(null)
    return Promise.resolve()
  }
}

function within(proof: Promise<void>, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(
      () => reject(new Error('Notifications do not come through: is there a pooler in between?')),
      PROOF_MS,
    )
    void proof.then(() => {
      timer.cancel()
      resolve()
    })
  })
}

export type { PoolClient }
