/**
 * Failovers of a Redis Cluster and of a Sentinel set in the middle of traffic: a primary is killed, another one is
 * paused and goes on later as if nothing had happened. Several processes compete for the same chats throughout (S3, Z5).
 *
 * What is required: no two hold a chat at once without fences that order them, no write of a lower fence is accepted
 * after one of a higher, every chat goes on by itself within RECOVERY_MS, and no process is started anew.
 */
import { describe, expect, it } from '@jest/globals'
import { spawnReplica, waitFor, type Replica } from '../support/index.js'
import { freshPrefix } from './support/bots.js'
import type { Served } from './support/contender.js'
import { stages } from './support/redis-stages.js'

const LEASE_MS = 1500
/**
 * From the election of another primary, which takes the servers as long as it takes them, until every chat is served
 * again: a lease, and slack for a loaded machine.
 */
const RECOVERY_MS = 5_000
const MINUTE = 60_000
const CHATS = Array.from({ length: 10 }, (_, n) => `chat-${n}`)
const now = (): number => performance.timeOrigin + performance.now()

class Contest {
  readonly processes: Replica[]

  constructor(place: object) {
    const prefix = freshPrefix()
    this.processes = ['a', 'b', 'c'].map((name) =>
      spawnReplica(new URL('./support/contender.ts', import.meta.url), {
        PLACE: JSON.stringify(place),
        PREFIX: prefix,
        REPLICA_ID: name,
        LEASE_MS: String(LEASE_MS),
        CHATS: CHATS.join(','),
      }),
    )
  }

  async begin(): Promise<void> {
    await Promise.all(this.processes.map((one) => one.next('started', { timeoutMs: MINUTE })))
    await this.servedSince(now())
  }

  /** Waits until every chat was served after `since`, and by every process some chat. @returns how long it took. */
  async servedSince(since: number): Promise<number> {
    const all = async (): Promise<boolean> => {
      const lasts = await Promise.all(this.processes.map((one) => this.progress(one)))
      const chat = (name: string): boolean => lasts.some((last) => (last[name] ?? 0) > since)
      const active = lasts.every((last) => Object.values(last).some((at) => at > since))
      return active && CHATS.every(chat)
    }
    await waitFor(all, { what: 'every chat is served again', timeoutMs: 3 * RECOVERY_MS })
    return now() - since
  }

  /** @returns every turn, what should not have been thrown, and how the processes ended. */
  async end(): Promise<{ served: Served[]; failures: unknown[]; codes: (number | null)[] }> {
    for (const one of this.processes) one.send({ do: 'end' })
    const histories = await Promise.all(
      this.processes.map((one) => one.next('history', { timeoutMs: MINUTE })),
    )
    const exits = await Promise.all(this.processes.map((one) => one.exited))
    return {
      served: histories.flatMap(({ served }) => served as Served[]),
      failures: histories.flatMap(({ failures }) => failures),
      codes: exits.map(({ code }) => code),
    }
  }

  private async progress(one: Replica): Promise<Record<string, number>> {
    one.send({ do: 'progress' })
    return (await one.next('progress'))['last'] as Record<string, number>
  }
}

/** Pairs of turns of one chat that no fence orders, and commits of a lower fence that came after a higher one's. */
function faultsOf(served: readonly Served[]): { unordered: string[]; overlaps: number; stale: string[] } {
  const found = { unordered: [] as string[], overlaps: 0, stale: [] as string[] }
  for (const chat of CHATS) {
    const turns = served.filter((one) => one.chat === chat).toSorted((x, y) => x.takenAt - y.takenAt)
    turns.forEach((turn, n) => {
      for (const later of turns.slice(n + 1)) {
        if (later.fence <= turn.fence)
          found.unordered.push(`${JSON.stringify(turn)} ${JSON.stringify(later)}`)
        // A committed turn's work was over when its commit was sent.
        const workedUntil = turn.outcome === 'committed' ? turn.sentAt : turn.endedAt
        if (later.takenAt < workedUntil) found.overlaps += 1
        const [low, high] = turn.fence < later.fence ? [turn, later] : [later, turn]
        const both = low.outcome === 'committed' && high.outcome === 'committed'
        if (both && high.endedAt < low.sentAt)
          found.stale.push(`${JSON.stringify(low)} ${JSON.stringify(high)}`)
      }
    })
  }
  return found
}

describe.each(stages)('S3, Z5: $name', ({ name, stage }) => {
  it(
    'a primary that is killed, then one that is paused and comes back: chats go on, fences order what overlaps',
    async () => {
      const { place, primary, whole } = await stage()
      const contest = new Contest(place)
      await contest.begin()
      const times: Record<string, number> = {}
      const elections: Record<string, number> = {}

      const first = await primary()
      let since = now()
      await first.kill()
      await first.replaced()
      elections['killed'] = now() - since
      since = now()
      times['killed'] = await contest.servedSince(since)
      await first.restart()
      await whole()

      const second = await primary()
      since = now()
      second.pause()
      await second.replaced()
      elections['paused'] = now() - since
      since = now()
      times['paused'] = await contest.servedSince(since)
      // It believes for a while that it is still the primary.
      since = now()
      second.resume()
      times['resumed'] = await contest.servedSince(since)
      await contest.servedSince(now() + 1000)

      const { served, failures, codes } = await contest.end()
      const { unordered, overlaps, stale } = faultsOf(served)
      console.info(name, { ...times, elections, turns: served.length, overlaps })
      expect(failures).toEqual([])
      expect(codes).toEqual([0, 0, 0])
      expect(unordered).toEqual([])
      expect(stale).toEqual([])
      for (const ms of Object.values(times)) expect(ms).toBeLessThan(RECOVERY_MS)
    },
    2 * MINUTE,
  )
})
