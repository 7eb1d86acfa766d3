/**
 * The rules that hold everything together, each with a test that fails when the rule is taken away: variants of the
 * scripts and of the client logic that exist here only. The list of variants is itself a test.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { CoordinationBackend, CoordinatorOptions, Message, Turn } from '@botmesh/core'
import { RedisStore, type RedisCoordinator } from '../src/index.js'
import { WIRING } from '../src/redis-coordinator.js'
import { composeBatch, type ScriptPatch } from '../src/scripts.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** What is broken: nothing, a script, or what a coordinator hears from its backend. */
interface Broken {
  script?: ScriptPatch
  wrap?: (backend: CoordinationBackend) => CoordinationBackend
}

/** Several replicas of one mesh. */
class Mesh {
  readonly prefix = `broken:${randomUUID()}`
  readonly base = `${encodeURIComponent(this.prefix)}:{0}:`
  private readonly stores: RedisStore[] = []
  private readonly coordinators: RedisCoordinator[] = []

  constructor(private readonly broken: Broken) {}

  store(): RedisStore {
    const store = new RedisStore({
      url: server.url,
      prefix: this.prefix,
      [WIRING]: { patch: this.broken.script },
    })
    this.stores.push(store)
    return store
  }

  coordinator(options: CoordinatorOptions = {}): RedisCoordinator {
    const { wrap } = this.broken
    const coordinator = this.store().coordinator({
      leaseMs: 1000,
      processId: randomUUID(),
      ...(wrap ? { wrap } : {}),
      ...options,
    })
    this.coordinators.push(coordinator)
    return coordinator
  }

  async close(): Promise<void> {
    await Promise.all(this.coordinators.map((one) => one.stop()))
    await Promise.all(this.stores.map((one) => one.close()))
  }
}

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`Broken: ${what}.`)
}

async function take(coordinator: RedisCoordinator, key: string): Promise<Turn> {
  const turn = await coordinator.turns.take(key, { waitMs: 3000 })
  if (turn === 'duplicate') throw new Error('Broken: duplicate.')
  return turn
}

const checkpoint = (revision: string) => ({
  v: 1 as const,
  name: 'order',
  kind: 'flow' as const,
  step: 'size',
  visit: 1,
  state: {},
  fingerprint: 'f',
  revision,
})

const message = (id: string): Message => ({
  id,
  chatId: '1',
  from: '1',
  type: 'text',
  body: id,
  isGroup: false,
  timestamp: 1,
})

/** Each rule's test: throws if the rule does not hold. */
const RULES: Record<string, (mesh: Mesh) => Promise<void>> = {
  'I5, Z4: a former holder writes nothing once another holds the chat': async (mesh) => {
    const [a, b] = [mesh.coordinator(), mesh.coordinator()]
    const first = await take(a, 'k')
    // What a's own client does not know: its grant was ended and given to b.
    await server.admin.hdel(`${mesh.base}holders`, 'k')
    const second = await take(b, 'k')
    const result = await first.commit({ checkpoint: checkpoint(`${first.fence}:1`), expectedRevision: null })
    check(result.outcome === 'refused', 'an old fence wrote')
    second.assertHeld()
    const kept = await second.commit({ checkpoint: checkpoint(`${second.fence}:1`), expectedRevision: null })
    check(kept.outcome === 'committed', 'the holder was refused')
  },

  'I5, Z4: a former holder commits no id once another holds the chat': async (mesh) => {
    const [a, b] = [mesh.coordinator(), mesh.coordinator()]
    const first = await take(a, 'k')
    await server.admin.hdel(`${mesh.base}holders`, 'k')
    const second = await take(b, 'k')
    const result = await first.commit({ inboundId: 'm1' })
    check(result.outcome === 'refused', 'an old fence committed')
    second.assertHeld()
    const kept = await second.commit({ inboundId: 'm1' })
    check(kept.outcome === 'committed', 'the holder was refused')
  },

  'K2: a checkpoint is replaced only by a writer that has seen it': async (mesh) => {
    const store = mesh.store()
    check(await store.setCheckpointIf('k', checkpoint('10:1'), null, 10), 'the first write was refused')
    check(
      !(await store.setCheckpointIf('k', checkpoint('10:2'), 'other', 10)),
      'an unseen revision was replaced',
    )
    check((await store.getCheckpoint('k'))?.revision === '10:1', 'the checkpoint was lost')
  },

  'T8, I4: tickets of a dead replica are skipped': async (mesh) => {
    // Heartbeats so rare that none repairs what the release got wrong.
    const [a, c] = [mesh.coordinator({ leaseMs: 10_000 }), mesh.coordinator({ leaseMs: 10_000 })]
    const first = await take(a, 'k')
    // A ticket of a session that is no more.
    await server.admin.rpush(`${mesh.base}q:k`, 'dead~1:1 ')
    await server.admin.hset(`${mesh.base}w:dead~1`, 'dead~1:1', 'k ')
    const third = c.turns.take('k', { waitMs: 1500 })
    await untilWaiting(mesh, c)
    // A subscription that comes up lets its replica ask once more, which would repair it, too.
    await untilSubscribed(mesh, c)
    await first.release()
    const turn = await third
    if (turn !== 'duplicate') await turn.release()
  },

  'I10: what the backend took away is found out within a third of a lease': async (mesh) => {
    const a = mesh.coordinator()
    const turn = await take(a, 'k')
    const held = `${mesh.base}h:${a.incarnation}`
    await server.admin.hdel(held, String(turn.fence))
    await server.admin.hdel(`${mesh.base}holders`, 'k')
    await sleep(600)
    check(turn.signal.aborted, 'a turn that the backend does not hold is still believed in')
  },

  'I10: a grant that nobody knows of is given back within a third of a lease': async (mesh) => {
    const [a, b] = [mesh.coordinator(), mesh.coordinator()]
    await a.start()
    const fence = String(Date.now() * 1000)
    // A ghost: granted to a, which never heard of it.
    await server.admin.hset(`${mesh.base}h:${a.incarnation}`, fence, 'k')
    await server.admin.hset(`${mesh.base}holders`, 'k', `${fence} ${a.incarnation}:zz`)
    const began = performance.now()
    await (await take(b, 'k')).release()
    check(performance.now() - began < 900, 'a ghost kept its chat')
  },

  'T6: the oldest record of a chat is worked on first': async (mesh) => {
    const store = mesh.store()
    await store.journal.record('k', message('m1'))
    await store.journal.record('k', message('m2'))
    check((await store.journal.oldest('k'))?.id === 'm1', 'a younger record came first')
    const turn = await mesh.coordinator().turns.take('k', { read: { journal: true } })
    check(turn !== 'duplicate' && turn.state?.record?.id === 'm1', 'the grant brought a younger record')
  },

  'Z3: a copy of a message that was committed meanwhile is dropped at its turn': async (mesh) => {
    const [a, b] = [mesh.coordinator(), mesh.coordinator()]
    const turn = await a.turns.take('k', { dedupeId: 'm1' })
    const copy = b.turns.take('k', { dedupeId: 'm1', waitMs: 3000 })
    await untilWaiting(mesh, b)
    if (turn !== 'duplicate') await turn.commit({ inboundId: 'm1' })
    check((await copy) === 'duplicate', 'a message was handled twice')
  },

  'I6, Z5: fences grow, also where the clock is behind those given so far': async (mesh) => {
    const a = mesh.coordinator()
    const ahead = Date.now() * 1000 + 60_000_000
    await server.admin.hset(`${mesh.base}holders`, ' floor', String(ahead))
    const turn = await take(a, 'k')
    check(turn.fence > ahead, 'a fence went back')
    await turn.release()
  },
}

/** Resolves when a ticket of this coordinator stands in the backend's line. */
async function untilWaiting(mesh: Mesh, coordinator: RedisCoordinator): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    if ((await server.admin.exists(`${mesh.base}w:${coordinator.incarnation}`)) === 1) return
    await sleep(5)
  }
  throw new Error('No ticket came to stand in line.')
}

/** Resolves when this coordinator hears of its grants, and has asked what it may have missed before. */
async function untilSubscribed(mesh: Mesh, coordinator: RedisCoordinator): Promise<void> {
  for (let tries = 0; tries < 400; tries += 1) {
    const [, listeners] = (await server.admin.pubsub(
      'NUMSUB',
      `${mesh.base}g:${coordinator.incarnation}`,
    )) as [string, number]
    if (listeners === 1) return sleep(100)
    await sleep(5)
  }
  throw new Error('It never subscribed.')
}

/** Changes the composed script in exactly one place. */
function replace(from: string, to: string): ScriptPatch {
  return (source) => {
    const changed = source.replaceAll(from, to)
    if (changed === source) throw new Error(`The script no longer has: ${from}`)
    return changed
  }
}

/** A coordinator that does not hear what a heartbeat compares. */
function deaf(backend: CoordinationBackend): CoordinationBackend {
  return new Proxy(backend, {
    get(target, name, receiver) {
      if (name === 'heartbeat') {
        return async (request: Parameters<CoordinationBackend['heartbeat']>[0]) => {
          const reply = await target.heartbeat(request)
          return reply.outcome === 'alive' ? { ...reply, unknown: [], missing: [] } : reply
        }
      }
      const value: unknown = Reflect.get(target, name, receiver)
      return typeof value === 'function' ? (value as () => void).bind(target) : value
    },
  })
}

/** What is taken away, and the rules whose tests notice. */
const VARIANTS: { variant: string; broken: Broken; caughtBy: (keyof typeof RULES)[] }[] = [
  {
    variant: 'no fence check',
    broken: {
      script: replace("own_life > 0 and record and find(record, fence .. ' ', 1, true) == 1", 'record'),
    },
    caughtBy: ['I5, Z4: a former holder writes nothing once another holds the chat'],
  },
  {
    variant: 'no compare-and-set',
    broken: { script: replace("if not repeated and (ARGV[at + 3] ~= '' or alive) then return nil end", '') },
    caughtBy: ['K2: a checkpoint is replaced only by a writer that has seen it'],
  },
  {
    variant: 'no fence check on the short way of one entry',
    broken: {
      script: replace("record and fence and find(record, fence .. ' ', 1, true) == 1 and", 'record and'),
    },
    caughtBy: ['I5, Z4: a former holder commits no id once another holds the chat'],
  },
  {
    variant: 'no dead-ticket rule',
    broken: { script: replace('if life_ms(of) > 0 then\n      if id', 'if true then\n      if id') },
    caughtBy: ['T8, I4: tickets of a dead replica are skipped'],
  },
  {
    variant: 'no dead-ticket rule on the short way of one entry',
    broken: { script: replace("or call('EXISTS', base .. 's:' .. next_session) == 0", 'or false') },
    caughtBy: ['T8, I4: tickets of a dead replica are skipped'],
  },
  {
    variant: 'no reconciliation',
    broken: { wrap: deaf },
    caughtBy: [
      'I10: what the backend took away is found out within a third of a lease',
      'I10: a grant that nobody knows of is given back within a third of a lease',
    ],
  },
  {
    variant: 'no oldest-record rule',
    broken: {
      script: replace(
        "call('LINDEX', base .. 'jq:' .. chat, 0)\n  if not id",
        "call('LINDEX', base .. 'jq:' .. chat, -1)\n  if not id",
      ),
    },
    caughtBy: ['T6: the oldest record of a chat is worked on first'],
  },
  {
    variant: 'no second look at committed ids',
    broken: { script: replace("if id ~= '' and stamp_of(chat .. ' ' .. id) then", 'if false then') },
    caughtBy: ['Z3: a copy of a message that was committed meanwhile is dropped at its turn'],
  },
  {
    variant: 'fences by the clock alone',
    broken: {
      script: (source) =>
        replace(
          'floor < now_us and now_us or floor + 1',
          'now_us',
        )(
          replace(
            'if not floor or #floor == #us and floor < us then return us end',
            'if us then return us end',
          )(source),
        ),
    },
    caughtBy: ['I6, Z5: fences grow, also where the clock is behind those given so far'],
  },
]

async function hold(rule: string, broken: Broken): Promise<void> {
  const mesh = new Mesh(broken)
  try {
    await RULES[rule]?.(mesh)
  } finally {
    await mesh.close()
  }
}

describe('rules that must not be missing', () => {
  it.each(Object.keys(RULES))('%s', (rule) => hold(rule, {}))
})

describe('broken on purpose', () => {
  it.each(
    VARIANTS.flatMap(({ variant, broken, caughtBy }) => caughtBy.map((rule) => ({ variant, broken, rule }))),
  )('$variant is caught by "$rule"', async ({ broken, rule }) => {
    await expect(hold(rule, broken)).rejects.toThrow(/^Broken|duplicate|No turn|superseded|was lost/)
  })

  it('every rule is guarded by a variant, and every variant changes the script that is sent', () => {
    const caught = VARIANTS.flatMap(({ caughtBy }) => caughtBy)
    expect(Object.keys(RULES).filter((rule) => !caught.includes(rule))).toEqual([])
    const whole = composeBatch({ waitingPerChat: 1, idsPerChat: 1, windowMs: 1 })
    const shas = VARIANTS.flatMap(({ broken }) =>
      broken.script
        ? [composeBatch({ waitingPerChat: 1, idsPerChat: 1, windowMs: 1 }, broken.script).sha]
        : [],
    )
    expect(new Set([whole.sha, ...shas]).size).toBe(shas.length + 1)
  })
})
