/**
 * A process that takes turns of the same chats as others of its kind and commits in each, as long as it is told to. It
 * keeps what happened when, by a clock that all processes of this machine share, for the test to look at afterwards.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { CoordinationUnavailableError, LeaseLostError, type Turn } from '@botmesh/core'
import { RedisStore, type RedisOptions } from '@botmesh/redis-store'
import { onCommand, tell } from '../../support/replica-side.js'

/** One turn that the application was given. Milliseconds since the epoch. */
export interface Served {
  chat: string
  fence: number
  takenAt: number
  /** When its commit was sent; later than `endedAt` if it was lost before. */
  sentAt: number
  /** When the commit was answered, or the turn was known to be lost. */
  endedAt: number
  outcome: 'committed' | 'refused' | 'lost'
  by: string
}

const env = (name: string): string => process.env[name] ?? ''
const now = (): number => performance.timeOrigin + performance.now()
const by = env('REPLICA_ID')
const store = new RedisStore({ ...(JSON.parse(env('PLACE')) as RedisOptions), prefix: env('PREFIX') })
const coordinator = store.coordinator({ leaseMs: Number(env('LEASE_MS')), replicaId: by })
const chats = env('CHATS').split(',')
const served: Served[] = []
const failures: string[] = []
let working = true

onCommand((command) => {
  if (command['do'] === 'progress') tell('progress', { last: lastCommits() })
  if (command['do'] === 'end') working = false
})
await coordinator.start()
const work = Promise.all(chats.map((chat) => serve(chat)))
tell('started', { incarnation: coordinator.incarnation })
await work
await coordinator.stop()
await store.close()
tell('history', { served, failures })
process.stdin.unref()

async function serve(chat: string): Promise<void> {
  while (working) {
    try {
      const turn = await coordinator.turns.take(chat, { waitMs: '20s' })
      if (turn !== 'duplicate') await use(chat, turn)
    } catch (error) {
      // What an outage is told by. Anything else is a mistake.
      if (!(error instanceof CoordinationUnavailableError)) failures.push(String(error))
      await delay(20)
    }
  }
}

async function use(chat: string, turn: Turn): Promise<void> {
  const one: Served = { chat, fence: turn.fence, takenAt: now(), sentAt: 0, endedAt: 0, outcome: 'lost', by }
  served.push(one)
  const lost = (): void => void (one.endedAt = now())
  turn.signal.addEventListener('abort', lost)
  try {
    await delay(1 + (one.fence % 4))
    one.sentAt = now()
    const result = await turn.commit({
      checkpoint: {
        ...{ v: 1, name: 'served', kind: 'flow', step: 'on', visit: 1, fingerprint: 'f' },
        state: { by, fence: turn.fence },
        revision: `${turn.fence}:1`,
      },
      expectedRevision: turn.revision ?? null,
    })
    one.outcome = result.outcome
    one.endedAt = now()
  } catch (error) {
    if (!(error instanceof LeaseLostError)) throw error
    one.endedAt ||= now()
  }
}

/** Chat → when it was last committed by this process. */
function lastCommits(): Record<string, number> {
  const last: Record<string, number> = {}
  for (const { chat, outcome, endedAt } of served) if (outcome === 'committed') last[chat] = endedAt
  return last
}
