/** Processes that each open a store on one database at the same time, and write something (S1). */
import { spawnReplica } from './replica.js'

/** @param script tells `ready`, opens its store at the word `open`, writes to the chat `chat <N>` and tells `written`. */
export async function startReplicas(script: URL, url: string, prefix: string, count: number): Promise<void> {
  const replicas = Array.from({ length: count }, (_, n) =>
    spawnReplica(script, { STORE_URL: url, PREFIX: prefix, N: String(n) }),
  )
  await Promise.all(replicas.map((one) => one.next('ready', { timeoutMs: 30_000 })))
  for (const one of replicas) one.send({ do: 'open' })
  await Promise.all(replicas.map((one) => one.next('written', { timeoutMs: 30_000 })))
  await Promise.all(replicas.map((one) => one.kill()))
}
