/** Z9: how long what pairs the shop is shown, and who may say it: boards of several replicas on one store. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import { MemoryStore, type Bot, type BotEvents } from '@botmesh/core'
import { ManualClock } from '@botmesh/core/testing'
import { pino } from 'pino'
import { sharedRedisUrl } from '../../../test/support/index.js'
import { RedisStore } from '@botmesh/redis-store'
import { PAIRED_BOT as bot, PairingBoard, type Pairing } from '../src/pairing/pairing-board.js'

const KEY = 'tienda:pairing/board'
const qr = (value: string): Pairing => ({ kind: 'qr', value })
const CONNECTING: Pairing = { kind: 'connecting' }
const CONNECTED: Pairing = { kind: 'connected' }

let clock: ManualClock
let store: MemoryStore
beforeEach(() => {
  clock = new ManualClock()
  store = new MemoryStore({ clock })
})

/** A replica; one with a clock of its own, which nobody moves, is frozen or dead as far as its timers go. */
function replica(itsClock = clock, itsStore: object = store) {
  const log = pino({ level: 'silent' })
  const board = new PairingBoard({ store: itsStore } as unknown as Bot, log, itsClock)
  return {
    board,
    lead: (fence: number) => board.elected({ bot, name: 'provider:baileys:tienda', fence }),
    follow: (reason: BotEvents['coordination:follower']['reason']) =>
      board.followed({ bot, name: 'provider:baileys:tienda', reason }),
    offer: (kind: 'qr' | 'code', value: string) => board.offered({ bot, kind, value }),
    state: (status: 'connecting' | 'open' | 'closed', more: { reason?: string; final?: boolean } = {}) =>
      board.changed({ bot, status, ...more }),
  }
}

async function shown(): Promise<Pairing> {
  await clock.settle()
  return replica().board.current()
}

describe('Z9: what pairs the shop', () => {
  it('L4: nothing that a former leader says replaces what the present one said, however late', async () => {
    const [old, present] = [replica(), replica()]
    old.lead(1)
    old.offer('qr', 'old')
    expect(await shown()).toEqual(qr('old'))
    present.lead(2)
    expect(await shown()).toEqual(CONNECTING)
    present.state('open')
    expect(await shown()).toEqual(CONNECTED)
    const late = [
      () => old.offer('qr', 'late'),
      () => old.state('open'),
      () => old.state('closed', { reason: 'logged-out', final: true }),
      () => old.state('connecting'),
      () => old.follow('lost'),
    ]
    for (const say of late) {
      say()
      expect(await shown()).toEqual(CONNECTED)
    }
    // Also where the present leader has just taken something back.
    present.state('closed', { reason: 'connection-closed' })
    old.lead(1)
    old.offer('code', 'ABCD1234')
    expect(await shown()).toEqual(CONNECTING)
  })

  it('L4: one whose session another replica has opened says nothing of it, and nothing after it', async () => {
    const old = replica()
    old.lead(1)
    old.state('open')
    old.state('closed', { reason: 'superseded', final: true })
    old.offer('qr', 'late')
    expect(await shown()).toEqual(CONNECTED)
    old.follow('lost')
    await clock.advance(60_000)
    expect(await shown()).toEqual(CONNECTING)
  })

  it('a standby, and another bot, have nothing to say', async () => {
    const { board, offer, state, follow } = replica()
    follow('standby')
    offer('qr', 'x')
    state('open')
    const other = 'whatsapp'
    board.elected({ bot: other, name: 'provider:meta:tienda', fence: 9 })
    board.offered({ bot: other, kind: 'qr', value: 'x' })
    board.changed({ bot: other, status: 'open' })
    board.followed({ bot: other, name: 'provider:meta:tienda', reason: 'stopped' })
    expect(await shown()).toEqual(CONNECTING)
    expect(await store.getCheckpoint(KEY)).toBeNull()
  })

  it('a connection shows its first QR code for a minute and the others for 20 s; so does the next one', async () => {
    const { lead, offer, state } = replica()
    lead(1)
    for (const connection of ['a', 'b']) {
      state('connecting')
      for (const [value, lastsMs] of [
        [`${connection}1`, 61_000],
        [`${connection}2`, 21_000],
        [`${connection}3`, 21_000],
      ] as const) {
        offer('qr', value)
        await clock.advance(lastsMs - 1)
        expect(await shown()).toEqual(qr(value))
        await clock.advance(1)
        expect(await shown()).toEqual(CONNECTING)
      }
    }
  })

  it('a code to type is shown as long as the connection that asked for it lives, 160 s at most', async () => {
    const { lead, offer, state } = replica()
    lead(1)
    offer('code', 'ABCD1234')
    await clock.advance(159_999)
    expect(await shown()).toEqual({ kind: 'code', value: 'ABCD1234' })
    await clock.advance(1)
    expect(await shown()).toEqual(CONNECTING)
    offer('code', 'EFGH5678')
    expect(await shown()).toEqual({ kind: 'code', value: 'EFGH5678' })
    state('closed', { reason: 'timed-out' })
    expect(await shown()).toEqual(CONNECTING)
  })

  it('what has run out is gone from the store, also if the leader has died', async () => {
    const dead = replica(new ManualClock())
    dead.lead(1)
    dead.offer('qr', 'x')
    await clock.advance(60_999)
    expect(await store.getCheckpoint(KEY)).not.toBeNull()
    await clock.advance(1)
    expect(await store.getCheckpoint(KEY)).toBeNull()
  })

  it('"connected" is said again and again by a leader that lives; one that has died is believed for a minute', async () => {
    const { lead, state } = replica()
    lead(1)
    state('open')
    await clock.advance(600_000)
    expect(await shown()).toEqual(CONNECTED)
    const dead = replica(new ManualClock())
    dead.lead(2)
    dead.state('open')
    await clock.advance(59_999)
    expect(await shown()).toEqual(CONNECTED)
    await clock.advance(1)
    expect(await shown()).toEqual(CONNECTING)
  })

  it('a leader that stops takes back what it said, but for why it was closed for good', async () => {
    const { lead, offer, state, follow } = replica()
    lead(1)
    offer('qr', 'x')
    expect(await shown()).toEqual(qr('x'))
    follow('stopped')
    expect(await shown()).toEqual(CONNECTING)
    expect(clock.timers).toBe(0)
    lead(2)
    state('closed', { reason: 'logged-out', final: true })
    follow('transport-down')
    expect(await shown()).toEqual({ kind: 'closed', reason: 'logged-out' })
    lead(3)
    expect(await shown()).toEqual(CONNECTING)
  })

  it('what could not be written before it ran out is not written any more', async () => {
    let resolve = () => {}
    const answer = new Promise<void>((done) => (resolve = done))
    const asked: string[] = []
    const slow = new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return async (...args: unknown[]) => {
          await answer
          asked.push(String(name))
          return Reflect.apply(value, target, args) as unknown
        }
      },
    })
    const { lead, offer } = replica(clock, slow)
    lead(1)
    offer('qr', 'x')
    await clock.advance(20_000)
    clock.freeze(41_000)
    resolve()
    expect(await shown()).toEqual(CONNECTING)
    expect(asked).toEqual(['openState', 'clearCheckpointIf', 'openState'])
  })

  it('a store that knows no fences is refused', () => {
    const plain = { kind: 'plain', shared: true }
    expect(() => replica(clock, plain)).toThrow(/needs a store that knows fences; the store "plain" does not/)
  })

  it('L4: on Redis too, a former leader neither replaces nor removes', async () => {
    const redis = new RedisStore({ url: await sharedRedisUrl(), prefix: `pairing-${process.pid}` })
    try {
      const [old, present] = [replica(clock, redis), replica(clock, redis)]
      const shownIn = async ({ board }: typeof old) => {
        await board.settled()
        return board.current()
      }
      old.lead(1)
      old.offer('qr', 'old')
      expect(await shownIn(old)).toEqual(qr('old'))
      present.lead(2)
      expect(await shownIn(present)).toEqual(CONNECTING)
      old.offer('qr', 'late')
      expect(await shownIn(old)).toEqual(CONNECTING)
      present.state('open')
      expect(await shownIn(present)).toEqual(CONNECTED)
      old.state('closed', { reason: 'logged-out', final: true })
      expect(await shownIn(old)).toEqual(CONNECTED)
      old.state('connecting')
      expect(await shownIn(old)).toEqual(CONNECTED)
    } finally {
      await redis.close()
    }
  })
})
