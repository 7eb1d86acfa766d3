/**
 * What a call of many entries does, one after the other in calls of one do too: the same random entries go to two
 * meshes, in batches to the one and singly to the other, and both answer and hold the same (I1, I3, I5, I9). Fences differ
 * between them and are compared as `F`; who is flagged to have waiters is not compared, as a flag may be too many.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { composeBatch } from '../src/scripts.js'
import { startRedis, type PrivateRedis } from './private-redis.js'

let server: PrivateRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const script = composeBatch({ waitingPerChat: 1000, idsPerChat: 1000, windowMs: 3_600_000 })
const SESSIONS = ['a~1', 'b~1']
const CHATS = Array.from({ length: 12 }, (_, n) => `c${n}`)
const QUIET = /^[RNCL]/

interface Entry {
  chat: string
  token: string
  more: string[]
  check?: string
}

class World {
  constructor(readonly base: string) {}

  async call(session: string, batch: Entry[]): Promise<string[]> {
    const often = (chat: string): boolean => batch.filter((one) => one.chat === chat).length > 1
    const quiet = batch.filter((one) => QUIET.test(one.token) && !often(one.chat))
    const all = [...quiet, ...batch.filter((one) => !quiet.includes(one))]
    const checks = all.flatMap(({ check }) => (check === undefined ? [] : [check]))
    const numbers = [quiet.length, all.length, checks.length].map(String)
    const entries = all.flatMap(({ chat, token, more }) => [
      often(chat) ? String.fromCharCode(token.charCodeAt(0) + 32) + token.slice(1) : token,
      ...more,
    ])
    const args = [...all.map(({ chat }) => chat), ...checks, ...entries]
    const reply = (await server.admin.eval(
      ...([
        script.source,
        1,
        `${this.base}holders`,
        this.base,
        session,
        '60000',
        ...numbers,
        ...args,
      ] as const),
    )) as string | (string | null)[]
    const [text, ...payloads] = [reply].flat()
    const lines = (text ?? '').split('\n')
    const told = all.map(({ chat, token }, n) => `${chat} ${token}: ${lines[n] ?? ''}`)
    return [...told, ...lines.slice(all.length).map((line) => `news: ${line}`), ...payloads.map(String)]
  }

  async holder(chat: string): Promise<{ fence: string; session: string; note: string } | null> {
    const record = await server.admin.hget(`${this.base}holders`, chat)
    const [, fence = '', session = ''] = /^(\d+) (.*):[^:]*$/.exec(record ?? '') ?? []
    if (record === null) return null
    const windows = await server.admin.keys(`${this.base}t:*`)
    const traces = await Promise.all(windows.toSorted().map((key) => server.admin.hget(key, chat)))
    return { fence, session, note: traces.findLast((one) => one !== null)?.split(' ')[1] ?? '0-' }
  }

  async everything(): Promise<string[]> {
    const found: string[] = []
    for (const key of await server.admin.keys(`${this.base}*`)) {
      const name = key.slice(this.base.length).replace(/^t:\d+/, 't')
      const type = await server.admin.type(key)
      if (type === 'list') found.push(`${name} ${(await server.admin.lrange(key, 0, -1)).join(',')}`)
      if (type !== 'hash') continue
      for (const [field, value] of Object.entries(await server.admin.hgetall(key))) {
        // Neither what keeps a hash out of the compact encoding, nor that no record is kept.
        if (!value.startsWith('...') && value !== '') found.push(`${name} ${field}=${value}`)
      }
    }
    return found
  }
}

/** Without what differs between two meshes. */
function alike(lines: string[]): string[] {
  return lines
    .map((line) =>
      line
        .replaceAll(/\d{13,}/g, 'F')
        .replace(/Q\d+/, 'Q')
        .replace(/\|W?(P?)W?$/, '|$1')
        .replace(/\|$/, '')
        .replace(/( LF .*): K- F:1$/, '$1: R')
        // A revision that the note says too may be told or not.
        .replace(/F \S+(\|F \d+S)/, 'F $1'),
    )
    .toSorted()
}

async function play(seed: number, rounds: number): Promise<void> {
  const random = new SeededRandom(seed)
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random.next() * of.length)] as T
  const worlds = [new World(`batched-${seed}:{0}:`), new World(`single-${seed}:{0}:`)] as const
  const session0 = { chat: '', token: 'S0', more: ['r', 'p'] }
  for (const world of worlds) for (const session of SESSIONS) await world.call(session, [session0])
  const tickets: { chat: string; session: string; n: number; take: Entry }[] = []
  let last = 0

  /** An entry for each of the worlds: fences and notes are their own. */
  const draw = async (session: string, ended: Set<string>): Promise<Entry[]> => {
    const chat = pick(CHATS)
    const holders = await Promise.all(worlds.map((world) => world.holder(chat)))
    const kind = Math.floor(random.next() * 10)
    const id = `${chat} m${Math.floor(random.next() * 12)}`
    if (kind < 5 && holders[0]?.session === session && !ended.has(chat)) {
      ended.add(chat)
      return holders.map((holder) => {
        const { fence, note } = holder ?? { fence: '', note: '' }
        if (kind === 0 && note === '0-') return { chat, token: `R${fence}`, more: [] }
        if (kind <= 1) return { chat, token: `N${fence} ${note}`, more: [] }
        if (kind === 2) return { chat, token: `C${fence} ${note}`, more: [id] }
        const args = [`${chat} #${fence}:1`, `${fence}:1`, `{"n":${last}}`]
        return { chat, token: `L${fence} ${note}`, more: args }
      })
    }
    const known = tickets.filter((one) => one.chat === chat && one.session === session)
    if (kind === 5 && known.length > 0) {
      const same = { chat, token: `${pick(['W', 'U'])}${pick(known).n.toString(36)}`, more: [] }
      return [same, same]
    }
    if (kind === 6 && known.length > 0) {
      // Its reply was lost.
      const { take } = pick(known)
      return [take, take]
    }
    last += 1
    const letter = pick(['T', 'I', '<', '?'])
    const take: Entry = { chat, token: `${letter}${last.toString(36)}`, more: [] }
    if (letter === 'I' || letter === '?') take.check = id
    tickets.push({ chat, session, n: last, take })
    return [take, take]
  }

  for (let round = 0; round < rounds; round += 1) {
    const session = pick(SESSIONS)
    const ended = new Set<string>()
    const batch: Entry[][] = []
    for (let n = 1 + Math.floor(random.next() * 8); n > 0; n -= 1) batch.push(await draw(session, ended))
    const batched = await worlds[0].call(
      session,
      batch.map(([one]) => one as Entry),
    )
    const singly: string[] = []
    for (const [, one] of batch) singly.push(...(await worlds[1].call(session, [one as Entry])))
    expect({ seed, round, told: alike(batched) }).toEqual({ seed, round, told: alike(singly) })
    const [left, right] = [await worlds[0].everything(), await worlds[1].everything()]
    expect({ seed, round, held: alike(left) }).toEqual({ seed, round, held: alike(right) })
  }
}

describe('batches', () => {
  const first = seedOfRun()
  it.each([first, first + 1, first + 2])(
    'I1–I9: do what their entries do one by one (SEED=%s)',
    (seed) => play(seed, 60),
    60_000,
  )
})
