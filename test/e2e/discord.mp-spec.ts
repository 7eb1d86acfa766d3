/** Discord's gateway: one connection at any time, however its replicas come and go, and no message is missed. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { setTimeout as delay } from 'node:timers/promises'
import { DiscordDouble, LUCIA, TOKEN } from '../doubles/discord/index.js'
import { waitFor } from '../support/index.js'
import { Crew, type BotReplica } from './support/bots.js'
import { Writers } from './support/writers.js'

const LEASE_MS = 1500
const MINUTE = 60_000
let discord: DiscordDouble
let crew: Crew
let writers: Writers<string>

beforeEach(async () => {
  discord = await new DiscordDouble().listen()
  crew = crewOf()
  writers = new Writers(write, repliesTo)
})
afterEach(() => {
  writers.stop()
  return discord.close()
})

function crewOf(more: Record<string, string> = {}): Crew {
  const env = { DISCORD_ROOT: discord.apiRoot, DISCORD_TOKEN: TOKEN, ...more }
  return new Crew({ leaseMs: LEASE_MS, durability: true, env })
}

/** Starts two and waits until one is connected. */
async function startTwo(): Promise<{ leader: BotReplica; standby: BotReplica }> {
  const two = await crew.joinTwo()
  await discord.until(({ gateway }) => gateway.sessions.size === 1)
  return two
}

/** Someone new writes a direct message. */
function write(): string {
  people += 1
  const chat = String(601_000_000_000_000_000n + BigInt(people))
  discord.say(`hello ${people}`, { channel_id: chat, author: { ...LUCIA, id: chat.replace(/^6/, '5') } })
  return chat
}
let people = 0

const repliesTo = (chat: string) =>
  discord.sent.filter(({ route }) => route === `POST /channels/${chat}/messages`).length

function oneConnectionAtATime(): void {
  expect(discord.gateway.mostOpen).toBe(1)
}

describe('scenario 18 in kind, P1: two replicas of a Discord bot', () => {
  it(
    'Z7: on SIGTERM the standby takes over in under a second, nobody is forgotten or answered twice',
    async () => {
      const { leader, standby } = await startTwo()
      const stopWriting = writers.keepAsking()
      await delay(300)
      const termAt = performance.now()
      const exit = leader.process.terminate()
      await standby.next('leader')
      await discord.until(({ gateway }) => gateway.resumed === 1)
      expect(performance.now() - termAt).toBeLessThan(1000)
      expect(await exit).toEqual({ code: 0, signal: null })
      await delay(300)
      await stopWriting()
      await writers.areAnsweredOnce()
      oneConnectionAtATime()
      expect(discord.gateway.identified).toBe(1)
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
      await delay(1100) // The session's record is written within a second.
      expect(standby.told('leader')).toEqual([])
      await crew.kill(leader)
      const killed = performance.now()
      for (let n = 0; n < 5; n += 1) await writers.ask()
      await standby.next('leader')
      await discord.until(({ gateway }) => gateway.open === 1)
      expect(performance.now() - killed).toBeLessThan(LEASE_MS + 1000)
      await writers.areAnsweredOnce()
      oneConnectionAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 20: a leader frozen while it waits to connect again opens nothing when it goes on',
    async () => {
      const { leader, standby } = await startTwo()
      // The session is gone: it waits a second at least, and its timer will be long due when the process goes on.
      discord.gateway.invalidate(false)
      await discord.until(({ gateway }) => gateway.open === 0)
      leader.process.pause()
      const frozen = performance.now()
      await standby.next('leader')
      expect(performance.now() - frozen).toBeLessThan(LEASE_MS + 1000)
      await discord.until(({ gateway }) => gateway.sessions.size === 1)
      const { accepted } = discord.gateway
      leader.process.resume()
      expect(await leader.next('follower', { where: ({ reason }) => reason === 'lost' })).toBeDefined()
      await writers.ask()
      await writers.areAnsweredOnce()
      await delay(1500)
      expect(discord.gateway.accepted).toBe(accepted)
      oneConnectionAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'P3: Discord closes the leader’s session for good: down for providerDownMs it resigns, and the standby connects',
    async () => {
      crew = crewOf({ PROVIDER_DOWN_MS: '1000' })
      const { leader, standby } = await startTwo()
      await writers.ask()
      await writers.areAnsweredOnce()
      const { accepted, identified, resumed } = discord.gateway
      const sessions = identified + resumed
      discord.gateway.refuseWith = 4010
      discord.gateway.close(4000)
      await discord.until(({ gateway }) => gateway.accepted === accepted + 1 && gateway.open === 0)
      discord.gateway.refuseWith = undefined
      const down = performance.now()
      await leader.next('follower', { where: ({ reason }) => reason === 'transport-down' })
      await standby.next('leader')
      expect(performance.now() - down).toBeLessThan(1000 + 1000)
      // A session that Discord has ended is not resumed: what was written meanwhile went to nobody.
      await discord.until(({ gateway }) => gateway.identified + gateway.resumed === sessions + 1)
      await writers.ask()
      await writers.areAnsweredOnce()
      oneConnectionAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'three rolling restarts under steady traffic: each is answered once',
    async () => {
      let { leader } = await startTwo()
      const stopWriting = writers.keepAsking()
      for (let round = 0; round < 3; round += 1) {
        const next = await crew.join(`r${round}`)
        const before = crew.told('leader').length
        await leader.process.terminate()
        const others = crew.members.filter((one) => one !== leader)
        await waitFor(() => crew.told('leader').length > before, { what: 'the next leader' })
        leader = others.find(({ name }) => name === crew.told('leader').at(-1)?.['replica']) ?? next
      }
      await stopWriting()
      await writers.areAnsweredOnce()
      oneConnectionAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
