/** WhatsApp Web: one connection at any time, however its replicas come and go; the session lies in Redis (Z9). */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { BaileysProvider, importFolder } from '@botmesh/baileys'
import { RecordingSink } from '@botmesh/core/testing'
import { RedisStore } from '@botmesh/redis-store'
import {
  doubleRootKey,
  SignalPerson,
  trustDoubleCertificates,
  WhatsAppWebDouble,
  type DoubleAccount,
} from '../doubles/whatsapp-web/index.js'
import { sharedRedisUrl, waitFor } from '../support/index.js'
import { Crew, type BotReplica } from './support/bots.js'

const LEASE_MS = 2000
const MINUTE = 60_000
const PHONE = '5215550001111'

trustDoubleCertificates()

/** Paired once, imported into each test's store. */
let folder: string
let account: DoubleAccount | undefined
let whatsapp: WhatsAppWebDouble
let crew: Crew
let ana: SignalPerson

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'botmesh-whatsapp-'))
  const double = await WhatsAppWebDouble.start()
  const socketOptions = { shouldSyncHistoryMessage: () => false }
  const options = { session: 'e2e', folder, printQr: false, waWebSocketUrl: double.url, socketOptions }
  const provider = new BaileysProvider(options)
  const sink = new RecordingSink()
  await provider.start(sink, new AbortController().signal)
  await sink.until(({ pairings }) => pairings.length > 0)
  double.scan(sink.pairings[0]?.value ?? '', PHONE)
  await sink.until(({ states }) => states.at(-1)?.status === 'open')
  await provider.stop()
  account = double.paired[0]
  await double.stop()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

beforeEach(async () => {
  whatsapp = await WhatsAppWebDouble.start()
  whatsapp.adopt(account!)
  ana = new SignalPerson('5215550002222', '77000000000001', 'Ana')
  whatsapp.addPerson(ana)
  const env = {
    WHATSAPP_URL: whatsapp.url,
    BOTMESH_TEST_WHATSAPP_ROOT: doubleRootKey(),
    PROVIDER_DOWN_MS: '1000',
  }
  crew = new Crew({ leaseMs: LEASE_MS, durability: true, env })
  const store = new RedisStore({ url: await sharedRedisUrl(), prefix: crew.prefix })
  await importFolder({ folder, session: 'e2e', store })
})
afterEach(() => whatsapp.stop())

async function startTwo(): Promise<{ leader: BotReplica; standby: BotReplica }> {
  const two = await crew.joinTwo()
  await connected(1)
  return two
}

const connected = (logins: number) =>
  waitFor(() => whatsapp.logins >= logins, { what: `${logins} logins`, timeoutMs: 20_000 })

const answers = () => whatsapp.received.map(({ message }) => message.extendedTextMessage?.text ?? '')

async function anaIsAnswered(texts: readonly string[]): Promise<void> {
  const said = () => texts.map((text) => answers().filter((one) => one.includes(text)).length)
  const what = () => `answers to ${texts.join(', ')}: there are ${said().join(', ')}`
  await waitFor(() => said().every((count) => count > 0), { what })
  expect(said()).toEqual(texts.map(() => 1))
}

function oneConnectionAtATime(): void {
  const { mostOpen, replaced } = whatsapp
  expect({ mostOpen, replaced, errors: whatsapp.errors }).toEqual({ mostOpen: 1, replaced: 0, errors: [] })
}

describe('P1, Z9: two replicas on WhatsApp Web, the session in Redis', () => {
  it(
    'Z7: on SIGTERM the standby takes over in under a second, with the same session, and answers what waited',
    async () => {
      const { leader, standby } = await startTwo()
      await whatsapp.write(ana, PHONE, 'hello 1')
      await anaIsAnswered(['hello 1'])
      const termAt = performance.now()
      const exit = leader.process.terminate()
      await whatsapp.write(ana, PHONE, 'hello 2')
      await standby.next('leader')
      expect(performance.now() - termAt).toBeLessThan(1000)
      await connected(2)
      expect(performance.now() - termAt).toBeLessThan(2000)
      expect(await exit).toEqual({ code: 0, signal: null })
      await whatsapp.write(ana, PHONE, 'hello 3')
      await anaIsAnswered(['hello 1', 'hello 2', 'hello 3'])
      oneConnectionAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'scenario 22: on SIGKILL it takes over within a lease and a second, without a QR code',
    async () => {
      const { leader, standby } = await startTwo()
      await whatsapp.write(ana, PHONE, 'hello 1')
      await anaIsAnswered(['hello 1'])
      // Keys are being written when it dies.
      await whatsapp.write(ana, PHONE, 'hello 2')
      await crew.kill(leader)
      const killed = performance.now()
      await standby.next('leader')
      expect(performance.now() - killed).toBeLessThan(LEASE_MS + 1000)
      await connected(2)
      await whatsapp.write(ana, PHONE, 'hello 3')
      await waitFor(() => answers().some((text) => text.includes('hello 3')), { what: 'an answer' })
      expect(whatsapp.pairingsShown).toBe(0)
      const { mostOpen, replaced } = whatsapp
      expect({ mostOpen, replaced }).toEqual({ mostOpen: 1, replaced: 0 })
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'I4, scenario 20: a leader that was frozen opens no connection and overwrites no key when it goes on',
    async () => {
      const { leader, standby } = await startTwo()
      leader.process.pause()
      await standby.next('leader')
      // Its connection is still there, as that of any frozen process: WhatsApp throws it out.
      await connected(2)
      leader.process.resume()
      await leader.next('follower', { where: ({ reason }) => reason === 'lost' })
      await whatsapp.write(ana, PHONE, 'hello 1')
      await anaIsAnswered(['hello 1'])
      expect({ logins: whatsapp.logins, accepted: whatsapp.accepted }).toEqual({ logins: 2, accepted: 2 })
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )

  it(
    'P3, scenario 19: thrown out by another connection (440) it resigns, and the standby connects',
    async () => {
      const { leader, standby } = await startTwo()
      whatsapp.streamError(440)
      await leader.next('follower', { where: ({ reason }) => reason === 'transport-down' })
      await standby.next('leader')
      await connected(2)
      await whatsapp.write(ana, PHONE, 'hello 1')
      await anaIsAnswered(['hello 1'])
      oneConnectionAtATime()
      expect(await crew.disband()).toEqual([])
    },
    MINUTE,
  )
})
