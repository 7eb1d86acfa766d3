/**
 * What pairs the shop with a phone at the moment, where every replica finds it: only the leader is told, but a balancer
 * may ask any of them. It is kept as an ephemeral checkpoint under a key that is no chat's, because that is what a store
 * fences and lets expire: a former leader writes nothing over what a later one wrote, however late it wakes up, and
 * what a leader showed when it died cannot be read any longer than it was of use. A leader that lives removes it itself.
 *
 *   idle      notes nothing
 *   leading   notes what the transport says, under the leadership's fence
 *
 * idle → leading: elected. leading → idle: the leadership has ended, or another replica has opened the session.
 */
import { Inject, Injectable } from '@nestjs/common'
import { OnEvent } from '@nestjs/event-emitter'
import {
  Bot,
  ConfigError,
  type BotEvents,
  type Clock,
  type FlowCheckpoint,
  type Store,
  type Timer,
} from '@botmesh/core'
import type { Logger } from 'pino'
import { PINO } from '../logging/pino-logger.js'

export const PAIRED_BOT = 'whatsapp-web'
export const PAIRING_CLOCK = Symbol('clock of the pairing board')

export type Pairing =
  | { kind: 'qr' | 'code'; value: string }
  | { kind: 'connected' | 'connecting' }
  /** It will not connect again by itself. */
  | { kind: 'closed'; reason: string }

const KEY = 'tienda:pairing/board'
/**
 * WhatsApp gives a connection six QR codes. Baileys shows the first for a minute and each other one for 20 s, then
 * ends the connection. A second more, so that the page does not blink while the next one is on its way.
 */
const FIRST_QR_MS = 61_000
const NEXT_QR_MS = 21_000
/** A code to type is asked for once a connection and good until its end: as long as all its QR codes, 60 + 5 × 20 s. */
const CODE_MS = 160_000
/** The leader says again and again that it is connected: one that died without a word is not believed for long. */
const CONNECTED_MS = 60_000
const REFRESH_MS = 20_000
/** Until the next attempt of whoever leads then, which begins well before. */
const CLOSED_MS = 600_000

@Injectable()
export class PairingBoard {
  private readonly store: FencedStore
  private fence: number | undefined
  private firstQr = true
  private last: Pairing['kind'] = 'connecting'
  /** Removes what has run out, or says again that it is connected. */
  private next: Timer | undefined
  private writes = 0
  /** Events are noted in their order. */
  private noted: Promise<void> = Promise.resolve()

  constructor(
    bot: Bot,
    @Inject(PINO) private readonly log: Logger,
    @Inject(PAIRING_CLOCK) private readonly clock: Clock,
  ) {
    this.store = fenced(bot.store)
  }

  @OnEvent('coordination:leader')
  elected({ bot, fence }: BotEvents['coordination:leader']) {
    if (bot !== PAIRED_BOT) return
    this.fence = fence
    this.firstQr = true
    this.clear()
  }

  @OnEvent('coordination:follower')
  followed({ bot, reason }: BotEvents['coordination:follower']) {
    if (bot !== PAIRED_BOT || reason === 'standby') return
    // Why it was closed for good remains true; the rest ended with the connection.
    if (this.last !== 'closed') this.clear()
    this.idle()
  }

  @OnEvent('provider:pairing')
  offered({ bot, kind, value }: BotEvents['provider:pairing']) {
    if (bot !== PAIRED_BOT) return
    const lastsMs = kind === 'code' ? CODE_MS : this.firstQr ? FIRST_QR_MS : NEXT_QR_MS
    this.firstQr = false
    this.note({ kind, value }, lastsMs)
    this.later(lastsMs, () => this.clear())
  }

  @OnEvent('provider:state')
  changed({ bot, status, reason, final }: BotEvents['provider:state']) {
    if (bot !== PAIRED_BOT) return
    // What comes now is for the replica to say that has taken the session.
    if (reason === 'superseded') this.idle()
    else if (status === 'open') this.connected()
    else if (final === true) this.note({ kind: 'closed', reason: reason ?? status }, CLOSED_MS)
    else {
      if (status === 'connecting') this.firstQr = true
      this.clear()
    }
  }

  async current(): Promise<Pairing> {
    // Nothing noted, or nothing any more.
    const checkpoint = await this.store.getCheckpoint(KEY)
    return checkpoint === null ? { kind: 'connecting' } : (checkpoint.state as { pairing: Pairing }).pairing
  }

  /** When all that was said by now is in the store, or was refused by it. */
  settled(): Promise<void> {
    return this.noted
  }

  private connected(): void {
    this.note({ kind: 'connected' }, CONNECTED_MS)
    this.later(REFRESH_MS, () => this.connected())
  }

  private clear(): void {
    this.last = 'connecting'
    this.enqueue((fence) => this.remove(fence))
  }

  private note(pairing: Pairing, lastsMs: number): void {
    this.last = pairing.kind
    const until = this.clock.monotonic() + lastsMs
    this.enqueue((fence) => this.write(fence, pairing, until))
  }

  private later(ms: number, act: () => void): void {
    if (this.fence !== undefined) this.next = this.clock.setTimeout(act, ms, { background: true })
  }

  private idle(): void {
    this.fence = undefined
    this.next?.cancel()
  }

  /** Every note replaces the one before and what was planned for it. */
  private enqueue(step: (fence: number) => Promise<void>): void {
    const { fence } = this
    this.next?.cancel()
    if (fence === undefined) return
    this.noted = this.noted
      .then(() => step(fence))
      .catch((error: unknown) => {
        // Whoever leads no more may have lost its store too: what it left runs out.
        const level = this.fence === fence ? 'warn' : 'debug'
        this.log[level]({ err: error }, 'the pairing page could not be brought up to date')
      })
  }

  /** Not if it was held up for so long that it has run out; then whatever removes it is in the queue already. */
  private async write(fence: number, pairing: Pairing, until: number): Promise<void> {
    const state = await this.store.openState(KEY, fence)
    const ttlMs = Math.floor(until - this.clock.monotonic())
    if (state === null || ttlMs <= 0) return
    const checkpoint: FlowCheckpoint = {
      v: 1,
      name: KEY,
      kind: 'flow',
      visit: 0,
      state: { pairing },
      fingerprint: '',
      ephemeral: true,
      ttlMs,
      revision: `${fence}:${++this.writes}`,
    }
    // Refused: a later leader has written in between.
    await this.store.setCheckpointIf(KEY, checkpoint, state.revision, fence)
  }

  private async remove(fence: number): Promise<void> {
    const state = await this.store.openState(KEY, fence)
    if (state !== null) await this.store.clearCheckpointIf(KEY, state.revision, fence)
  }
}

type FencedStore = Pick<Store, 'getCheckpoint'> &
  Required<Pick<Store, 'openState' | 'setCheckpointIf' | 'clearCheckpointIf'>>

/** @throws ConfigError for a store that would let a former leader write. */
function fenced(store: Store): FencedStore {
  if (isFenced(store)) return store
  throw new ConfigError(
    `The pairing page needs a store that knows fences; the store "${store.kind}" does not.`,
    {
      option: 'store',
      value: store.kind,
    },
  )
}

function isFenced(store: Store): store is Store & FencedStore {
  return (['openState', 'setCheckpointIf', 'clearCheckpointIf'] as const).every(
    (method) => store[method] !== undefined,
  )
}
