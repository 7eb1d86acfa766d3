/** Telegram's long polling: one poller at any time, however its replicas come and go. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { setTimeout as delay } from 'node:timers/promises'
import { TelegramApiDouble } from '../doubles/telegram-api.js'
import { waitFor } from '../support/index.js'
import { Crew, type BotReplica } from './support/bots.js'
import { Writers } from './support/writers.js'

const LEASE_MS = 1500
const LONGEST_POLL_MS = 400
const MINUTE = 60_000
let telegram: TelegramApiDouble
let crew: Crew
let writers: Writers<number>

beforeEach(async () => {
  telegram = await new TelegramApiDouble({ longestPollMs: LONGEST_POLL_MS }).listen()
  crew = crewOf()
  writers = new Writers(write, repliesTo)
})
afterEach(() => {
  writers.stop()
  return telegram.close()
})

function crewOf(more: Record<string, string> = {}): Crew {
  const env = { TELEGRAM_ROOT: telegram.url, TELEGRAM_TOKEN: telegram.token, ...more }
  return new Crew({ leaseMs: LEASE_MS, durability: true, env })
}

/** Starts two and waits until one polls. */
async function startTwo(): Promise<{ leader: BotReplica; standby: BotReplica }> {
  const two = await crew.joinTwo()
  await telegram.until(({ openPolls }) => openPolls === 1)
  return two
}

/** Someone new writes. */
function write(): number {
  people += 1
  telegram.say(people, `hello ${people}`)
  return people
}
let people = 0

const repliesTo = (chat: number) =>
  telegram.sent.filter(({ payload }) => Number(payload['chat_id']) === chat).length

/** After one failed poll it pauses, and its timer will be long due when the process goes on. @returns since when, in ms */
async function freezeInPause(leader: BotReplica): Promise<number> {
  for (;;) {
    telegram.failNext('getUpdates', { kind: 'error', code: 500 })
    await leader.next('log', { where: ({ text }) => text === 'polling pauses' })
    leader.process.pause()
    const frozen = performance.now()
    // A poll that it had sent already arrives.
    await delay(100)
    if (telegram.openPolls === 0) return frozen
    leader.process.resume()
  }
}

function onePollerAtATime(): void {
  expect({ most: telegram.mostPolls, conflicts: telegram.conflicts }).toEqual({ most: 1, conflicts: 0 })
}

describe('scenario 18, P1: two replicas of a polling bot', () => {
  it(
    'Z7: on SIGTERM the standby takes over in under a second, nobody is forgotten or answered twice',
    async () => {
      const { leader, standby } = await startTwo()
      const stopWriting = writers.keepAsking()
      await delay(300)
      const termAt = Date.now()
      const exit = leader.process.terminate()
      const led = await standby.next('leader')
      expect(Number(led['at']) - termAt).toBeLessThan(1000)
      await telegram.until(({ openPolls }) => openPolls === 1)
      expect(Date.now() - termAt).toBeLessThan(1500)
      expect(await exit).toEqual({ code: 0, signal: null })
      await delay(300)
      await stopWriting()
      await writers.areAnsweredOnce()
      onePollerAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 21: on SIGKILL it takes over within a lease and a second, though each bot was started twice',
    async () => {
      const { leader, standby } = await startTwo()
      for (let n = 0; n < 5; n += 1) await writers.ask()
      await writers.areAnsweredOnce()
      expect(standby.told('leader')).toEqual([])
      await crew.kill(leader)
      const killed = performance.now()
      for (let n = 0; n < 5; n += 1) await writers.ask()
      await standby.next('leader')
      await telegram.until(({ openPolls }) => openPolls === 1)
      expect(performance.now() - killed).toBeLessThan(LEASE_MS + 1000)
      await writers.areAnsweredOnce()
      onePollerAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 20: a leader frozen while it waits to poll again has lost the leadership when it goes on: no poll',
    async () => {
      const { leader, standby } = await startTwo()
      const frozen = await freezeInPause(leader)
      await writers.ask()
      await standby.next('leader')
      expect(performance.now() - frozen).toBeLessThan(LEASE_MS + 1000)
      await writers.areAnsweredOnce()
      const { polls } = telegram
      leader.process.resume()
      expect(await leader.next('follower', { where: ({ reason }) => reason === 'lost' })).toBeDefined()
      await waitFor(() => telegram.polls > polls + 2, { what: 'the new leader goes on polling' })
      await writers.ask()
      await writers.areAnsweredOnce()
      onePollerAtATime()
      expect(leader.told('leader')).toHaveLength(1)
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'P3: Telegram ends the leader’s polling (409): down for providerDownMs it resigns, and the standby polls',
    async () => {
      crew = crewOf({ PROVIDER_DOWN_MS: '1000' })
      const { leader, standby } = await startTwo()
      await writers.ask()
      await writers.areAnsweredOnce()
      const description = 'Conflict: terminated by other getUpdates request'
      telegram.failNext('getUpdates', { kind: 'error', code: 409, description })
      // The pause after a conflict is two seconds at least: longer than the patience with a transport that is down.
      await leader.next('log', { where: ({ text }) => text === 'polling pauses' })
      const down = performance.now()
      await writers.ask()
      await leader.next('follower', { where: ({ reason }) => reason === 'transport-down' })
      await standby.next('leader')
      expect(performance.now() - down).toBeLessThan(1000 + 1000)
      await writers.areAnsweredOnce()
      onePollerAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
