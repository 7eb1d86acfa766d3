/** A bot with durable tasks as a process of its own, for tests that kill and freeze it: it tells of each run. */
import { Redis } from 'ioredis'
import { Bot, type TaskContext } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import { RedisStore } from '@botmesh/redis-store'
import { setFenced } from '../../guides/fenced-writes.js'
import { onCommand, tell } from '../../support/replica-side.js'

const {
  REDIS_URL,
  DATA_URL,
  PREFIX = 'tasks',
  REPLICA_ID = 'unnamed',
  PLACE,
  LEASE_MS = '1000',
} = process.env
const report = (event: string, fields: object = {}): void =>
  tell(event, { at: Date.now(), by: REPLICA_ID, ...fields })
const silent = () => undefined
const logger = { debug: silent, info: silent, warn: silent, error: silent }

const redis = new RedisStore({ url: REDIS_URL, prefix: PREFIX })
// Loaded only where it is used: the other replicas start sooner without it.
const { PostgresStore } = DATA_URL === undefined ? {} : await import('@botmesh/postgres-store')
const store = PostgresStore === undefined ? redis : new PostgresStore({ url: DATA_URL, prefix: PREFIX })
const leaseMs = Number(LEASE_MS)
const bot = new Bot({
  provider: new FakeProvider({ id: 'line:tasks' }),
  store,
  logger,
  ...(PLACE === 'leases'
    ? { scheduler: { leaseMs } }
    : {
        scheduler: true,
        coordination: { coordinator: redis.coordinator({ leaseMs, replicaId: REPLICA_ID }) },
      }),
})
/** What the tasks write to: it knows nothing of Botmesh but the fences. */
const resource = new Redis(REDIS_URL ?? '')

const of = ({ occurrence, attempt, fence }: TaskContext) => ({ due: +occurrence, attempt, fence })
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

bot.schedule('* * * * * *', { id: 'tick' }, async (task) => {
  report('tick', of(task))
  await pause(20)
  report('ticked', of(task))
})
bot.every('1s', { id: 'long' }, async (task) => {
  report('long', of(task))
  // Longer than its lease, and deaf to its signal.
  await pause(leaseMs * 1.6)
  const accepted = await setFenced(resource, `${PREFIX}:resource`, REPLICA_ID, task.fence)
  report('wrote', { ...of(task), accepted, aborted: task.signal.aborted })
})
bot.on('error', ({ error }) => report('error', { error: String(error) }))
bot.on('task:missed', ({ id, from, to }) => report('missed', { id, from: +from, to: +to }))
bot.on('coordination:lease-lost', ({ key, reason }) => report('lease-lost', { key, reason }))
process.once('SIGTERM', () => void end())
onCommand(() => undefined)
await bot.start()
report('started')

async function end(): Promise<void> {
  await bot.stop()
  resource.disconnect()
  report('stopped')
  process.exit(0)
}
