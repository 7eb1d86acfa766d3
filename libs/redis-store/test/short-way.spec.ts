/**
 * The short way of one entry decides what the general rules decide: both are run on the same state, which is drawn with
 * everything a mesh leaves behind (dead sessions, flags, lines, two windows, clocks that went back), and with damage.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { composeBatch, scriptPart, type Script } from '../src/scripts.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

const WINDOW_MS = 1000
const BASE = 'short:{0}:'
const SESSIONS = ['a~1', 'b~1', 'x:y\\20z'] as const
const CHATS = ['c', 'é:1', 'k'] as const
const IDS = ['m1', 'm:2', 'ü'] as const

/** Time is what a state says, and what would be published is kept. */
const observed = (source: string): string =>
  source
    .replaceAll("call('TIME')", "call('HMGET', 'clock', 's', 'us')")
    .replaceAll("redis.pcall('PUBLISH', ", "redis.pcall('RPUSH', ")
const limits = { waitingPerChat: 3, idsPerChat: 1000, windowMs: WINDOW_MS }
const SHORT = composeBatch(limits, observed)
const GENERAL = composeBatch(limits, (source) => observed(source.replace(scriptPart('single-entry'), '')))

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

type Write = [command: 'hset' | 'rpush' | 'set' | 'psetex', key: string, ...args: string[]]
interface State {
  clock: [s: string, us: string]
  writes: Write[]
  session: string
  chat: string
  checks: string[]
  entry: string[]
}

/** A state, and an entry that concerns it. */
function draw(random: SeededRandom): State {
  const below = (n: number): number => Math.floor(random.next() * n)
  const pick = <T>(of: readonly T[]): T => of[below(of.length)] as T
  const chance = (share: number): boolean => random.next() < share
  const writes: Write[] = [['hset', 'holders', '', '.'.repeat(70)]]
  const [s, us] = [1_780_000_000 + below(3), pick([0, 5, 999_999, below(1_000_000)])]
  const now = s * 1e6 + us
  const ms = Math.floor(now / 1000)
  const near = (): string =>
    String(pick([now - 1, now, now + 1, now - 5e6, now + 5e6, Math.floor(now / 10), 99, now * 10]))
  const note = (): string => pick(['0-', '2-', '0P', '3P', '1Sab:1'])
  const chat = pick(CHATS)
  const id = pick(IDS)
  const alive = SESSIONS.filter(() => chance(0.8))
  for (const session of alive) writes.push(['psetex', `s:${session}`, '100000000', 'x'])
  if (chance(0.9)) writes.push(['hset', 'holders', ' floor', near()])
  const fence = near()
  const flags = pick(['', '', '|W', '|W', '|W', '|WP', '|PW', '|P', '|'])
  const held = chance(0.75)
  if (held) {
    const holder = pick(SESSIONS)
    writes.push(['hset', 'holders', chat, `${fence} ${holder}:${pick(['1', '2', '3'])}${flags}`])
    writes.push(['hset', `h:${holder}`, fence, chat])
  }
  for (const epoch of [0, 1].map((back) => Math.floor(ms / WINDOW_MS) - back)) {
    if (chance(0.5)) writes.push(['hset', `t:${epoch}`, chat, `${near()} ${note()} ${pick(SESSIONS)}`])
    const stamp = pick([ms, ms - 500, ms - 999, ms - 1000, ms - 1500, ms + 100])
    if (chance(0.3)) writes.push(['hset', `t:${epoch}`, `${chat} ${id}`, `${stamp}:${pick([fence, '5'])}`])
  }
  if (chance(0.3)) writes.push(['hset', `c:${chat}`, 'r', '7:1', 'x', 'P', 'c', '{}'])
  const spoilt = chance(0.05) ? pick(['q', 'w']) : ''
  if (spoilt === 'q') writes.push(['set', `q:${chat}`, 'damaged'])
  else if (held && (flags.includes('W') || chance(0.1))) {
    for (let n = below(5); n > 0; n -= 1) {
      const session = pick(SESSIONS)
      const ticket = `${session}:${n + pick([1, 4])}`
      const about = pick(['', 'm1', 'm:2'])
      writes.push(['rpush', `q:${chat}`, `${ticket} ${about}`])
      if (spoilt === '' && chance(0.9)) writes.push(['hset', `w:${session}`, ticket, `${chat} ${about}`])
    }
  }
  if (spoilt === 'w') for (const session of SESSIONS) writes.push(['set', `w:${session}`, 'damaged'])
  const of = pick([fence, fence, fence, near(), 'NaN'])
  const ticket = pick(['1', '2', '3', '9'])
  const field = `${chat} ${id}`
  const [entry, ...checks] = pick<[string[], ...string[]]>([
    [[`T${ticket}`]],
    [[`I${ticket}`], field],
    [[`R${of}`]],
    [[`N${of} ${note()}`]],
    [[`C${of} ${note()}`, field]],
  ])
  const session = chance(0.03) ? '' : pick([...SESSIONS, ...alive])
  return { clock: [String(s), String(us)], writes, session, chat, checks, entry }
}

/** What the script answers, and what is there afterwards. */
async function outcome(script: Script, state: State): Promise<{ reply: unknown; after: string[] }> {
  const { clock, writes, session, chat, checks, entry } = state
  const { admin } = server
  await admin.flushdb()
  await admin.hset('clock', 's', clock[0], 'us', clock[1])
  for (const [command, key, ...args] of writes) await admin.call(command, `${BASE}${key}`, ...args)
  const quiet = /^[RCN]/.test(entry[0] ?? '') ? '1' : '0'
  const args = [BASE, session, '60000', quiet, '1', String(checks.length), chat, ...checks, ...entry]
  // Of one that fails as a whole, where it failed is of no account.
  const reply = await admin.eval(script.source, 1, `${BASE}holders`, ...args).catch(() => 'failed')
  const after: string[] = []
  for (const key of (await admin.keys('*')).toSorted()) {
    const type = await admin.type(key)
    const value =
      type === 'hash'
        ? Object.entries(await admin.hgetall(key))
            .map(String)
            .toSorted()
        : type === 'list'
          ? await admin.lrange(key, 0, -1)
          : await admin.get(key)
    after.push(`${key} ${JSON.stringify(value)}`)
  }
  return { reply, after }
}

/** Without what may differ: milliseconds left, a flag that is set in advance, a revision that the note says too. */
function alike(text: string): string {
  return text
    .replaceAll(/Q\d+/g, 'Q')
    .replaceAll(/\|W(?=")/g, '')
    .replaceAll(/(g\S+ \d+) \S+(\|\d+ \d+S)/g, '$1 $2')
}

function told({ reply, after }: Awaited<ReturnType<typeof outcome>>): string[] {
  return [[reply].flat().join('\n'), ...after].map(alike)
}

describe('the short way of one entry', () => {
  it('I1–I9: decides what the general rules decide, whatever is there', async () => {
    const seed = seedOfRun()
    const random = new SeededRandom(seed)
    const answers = new Set<string>()
    for (let n = 0; n < 500; n += 1) {
      const state = draw(random)
      const short = await outcome(SHORT, state)
      const general = await outcome(GENERAL, state)
      expect({ seed, n, state, found: told(short) }).toEqual({ seed, n, state, found: told(general) })
      answers.add(`${state.entry[0]?.charAt(0)}${String([short.reply].flat()[0]).charAt(0)}`)
    }
    // All that it can answer has been seen.
    expect([...answers]).toEqual(expect.arrayContaining(['TG', 'IG', 'TQ', 'IQ', 'RR', 'NR', 'CR', 'TO']))
  }, 60_000)

  it.each([
    ['I3: the last in line is granted', "'q:' .. chat, 0, 1)", "'q:' .. chat, -1, -1)"],
    [
      'I6: a fence is that of the clock',
      'return last < tonumber(us) and us or',
      'if true then return us end return',
    ],
    ['Z3: a committed id is forgotten with its window', 'if there >= 4 and', 'if false and'],
    ['T8: a dead session is given a chat', 'if there % 4 < 2 or', 'if'],
  ])(
    '%s: a short way with that fault is found out',
    async (_, from, to) => {
      const broken = composeBatch(limits, (source) => observed(source).replace(from, to))
      expect(broken.sha).not.toBe(SHORT.sha)
      const random = new SeededRandom(1)
      for (let n = 0; n < 2000; n += 1) {
        const state = draw(random)
        const [short, general] = [told(await outcome(broken, state)), told(await outcome(GENERAL, state))]
        if (short.join('\n') !== general.join('\n')) return
      }
      throw new Error('Nobody noticed.')
    },
    60_000,
  )
})
