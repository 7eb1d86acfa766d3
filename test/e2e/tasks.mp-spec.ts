/** Durable tasks over real processes and a real Redis: kill -9, a freeze, an orderly end (J1). */
import { beforeAll, expect, it } from '@jest/globals'
import {
  sharedPostgresUrl,
  sharedRedisUrl,
  spawnReplica,
  waitFor,
  type Replica,
  type ReplicaEvent,
} from '../support/index.js'
import { freshPrefix } from './support/bots.js'

const SCRIPT = new URL('./support/task-replica.ts', import.meta.url)
/** Sixteen processes at a time: each may be kept waiting for a while, and keeps its lease. */
const LEASE_MS = 2500
const MINUTE = 60_000

const PLACES = {
  'the coordinator, all in Redis': { PLACE: 'coordinator' },
  'leases of Redis': { PLACE: 'leases' },
  'leases of PostgreSQL, nothing in Redis': { PLACE: 'leases', data: true },
  'the coordinator in Redis, the rest in PostgreSQL': { PLACE: 'coordinator', data: true },
} as const
type Place = keyof typeof PLACES

class Team {
  readonly members = new Map<string, Replica>()
  /** What was told before does not count: the machine was busy with starting all of them. */
  private since = Infinity
  private readonly prefix = freshPrefix().replaceAll('-', '_')

  constructor(private readonly place: Place) {}

  async join(...names: string[]): Promise<void> {
    const { PLACE, ...place } = PLACES[this.place]
    const env = {
      REDIS_URL: await sharedRedisUrl(),
      ...('data' in place ? { DATA_URL: await sharedPostgresUrl() } : {}),
      ...{ PREFIX: this.prefix, PLACE, LEASE_MS: String(LEASE_MS) },
    }
    for (const name of names) this.members.set(name, spawnReplica(SCRIPT, { ...env, REPLICA_ID: name }))
    await Promise.all([...this.members.values()].map((one) => one.next('started', { timeoutMs: MINUTE })))
  }

  begin(): this {
    this.since = Date.now()
    return this
  }

  told(event: string): ReplicaEvent[] {
    const all = [...this.members.values()].flatMap(({ events }) =>
      events.filter((one) => one.event === event && Number(one['at']) >= this.since),
    )
    return all.sort((x, y) => Number(x['at']) - Number(y['at']))
  }

  until(event: string, what: string, where: (one: ReplicaEvent) => boolean): Promise<ReplicaEvent> {
    return waitFor(() => this.told(event).find(where), { what, timeoutMs: 30_000 })
  }

  get(event: ReplicaEvent): Replica {
    return this.members.get(String(event['by'])) as Replica
  }
}

async function killedAndStopped(team: Team): Promise<void> {
  await waitFor(() => team.told('ticked').length >= 3, { what: 'three seconds' })
  const dead = team.told('ticked').at(-1) as ReplicaEvent
  await team.get(dead).kill()
  const killed = Date.now()
  await team.until(
    'ticked',
    'ticks three seconds after the death',
    (one) => Number(one['due']) > killed + 3000,
  )
  const ticked = team.told('ticked')
  const done = [...new Set(ticked.map((one) => Number(one['due'])))]
  const [first = 0, last = 0] = [done[0], done.at(-1)]
  expect(done).toEqual(Array.from({ length: (last - first) / 1000 + 1 }, (_, n) => first + n * 1000))
  // Only one that had ended and was not noted yet when its replica died is run again.
  const again = ticked.filter((one) => one['attempt'] !== 1)
  expect(ticked.length - done.length).toBeLessThanOrEqual(1)
  for (const one of again) {
    expect(one['attempt']).toBe(2)
    expect(Number(one['at'])).toBeGreaterThan(killed)
    expect(Number(one['due'])).toBeLessThanOrEqual(killed)
  }
  expect(again.length).toBeGreaterThanOrEqual(ticked.length - done.length)
  const successor = ticked.find((one) => Number(one['at']) > killed)
  expect(Number(successor?.['at']) - killed).toBeLessThan(LEASE_MS * 2 + 1000)
  expect(Number(successor?.['fence'])).toBeGreaterThan(Number(dead['fence']))
  expect([...team.told('missed'), ...team.told('error')]).toEqual([])
  // An orderly end hands over at once.
  const leader = team.get(team.told('ticked').at(-1) as ReplicaEvent)
  expect((await leader.terminate()).code).toBe(0)
  const ended = Date.now()
  const next = await team.until(
    'tick',
    'the third one goes on',
    (one) => team.get(one) !== leader && Number(one['at']) > ended,
  )
  expect(Number(next['due'])).toBeGreaterThan(ended - 5000)
}

async function frozen(team: Team): Promise<void> {
  const isWhole = ({ due }: ReplicaEvent): boolean => team.told('long').some((one) => one['due'] === due)
  const kept = await team.until('wrote', 'a long run', isWhole)
  expect(kept).toMatchObject({ accepted: true, aborted: false, attempt: 1 })
  const seen = team.told('long').length
  const begun = await team.until('long', 'another long run', () => team.told('long').length > seen)
  const leader = team.get(team.told('long').at(-1) as ReplicaEvent)
  expect(leader).toBe(team.get(begun))
  const held = team.told('long').at(-1) as ReplicaEvent
  leader.pause()
  const over = await team.until('wrote', 'the successor writes', (one) => one['due'] === held['due'])
  expect(over).toMatchObject({ accepted: true, attempt: 2 })
  expect(team.get(over)).not.toBe(leader)
  leader.resume()
  const where = (one: ReplicaEvent): boolean => one['due'] === held['due']
  const late = await leader.next('wrote', { where, timeoutMs: 10_000 })
  expect(late).toMatchObject({ accepted: false, aborted: true, attempt: 1 })
  // What the frozen one thought it had done is not what the store remembers: the next run is the successor's.
  const last = await team.until('long', 'the next run', (one) => Number(one['at']) > Number(late['at']))
  expect(team.get(last)).not.toBe(leader)
  expect(last['attempt']).toBe(1)
  for (const member of team.members.values()) expect((await member.terminate()).code).toBe(0)
  expect(team.told('error')).toEqual([])
}

const KILLED = Object.keys(PLACES) as Place[]
const FROZEN: Place[] = ['the coordinator, all in Redis', 'leases of PostgreSQL, nothing in Redis']

/** All at the same time, since they mostly wait; and only when all replicas have started, which keeps the machine busy. */
let played: Record<'killed' | 'frozen', Map<Place, Promise<void>>>

beforeAll(async () => {
  const teams = (places: Place[]) => places.map((place) => ({ place, team: new Team(place) }))
  const [killing, freezing] = [teams(KILLED), teams(FROZEN)]
  await Promise.all([
    ...killing.map(({ team }) => team.join('a', 'b', 'c')),
    ...freezing.map(({ team }) => team.join('a', 'b')),
  ])
  const play = (all: typeof killing, scenario: (team: Team) => Promise<void>) =>
    new Map(all.map(({ place, team }) => [place, watched(scenario(team.begin()))]))
  played = { killed: play(killing, killedAndStopped), frozen: play(freezing, frozen) }
}, 1.5 * MINUTE)

/** Whoever waits for it hears of a failure, later. */
function watched(work: Promise<void>): Promise<void> {
  work.catch(() => undefined)
  return work
}

it.each(KILLED)(
  'scenario 32, led through %s: kill -9 of the leader: each second is run, none by two at a time, none missed',
  (place) => played.killed.get(place),
  MINUTE,
)

it.each(FROZEN)(
  'scenario 33, led through %s: a long task keeps its lease; frozen, it is taken over, and its late write is refused by its fence',
  (place) => played.frozen.get(place),
  MINUTE,
)
