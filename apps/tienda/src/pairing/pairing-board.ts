/**
 * What pairs the shop with a phone at the moment, where every replica finds it: only the leader is told, but a balancer
 * may ask any of them. It lies in the store no longer than it is of use.
 */
import { Inject, Injectable } from '@nestjs/common'
import { OnEvent } from '@nestjs/event-emitter'
import { Bot, systemClock, type BotEvents, type Store } from '@botmesh/core'
import type { Logger } from 'pino'
import { PINO } from '../logging/pino-logger.js'

export const PAIRED_BOT = 'whatsapp-web'

export type Pairing =
  | { kind: 'qr' | 'code'; value: string }
  | { kind: 'connected' | 'connecting' }
  /** It will not connect again by itself. */
  | { kind: 'closed'; reason: string }

const ROW = 'tienda:pairing'
const ATTEMPTS = 20
/** A QR code is good for a minute at most; then there is another one, or nobody who would make one. */
const GOOD_MS = 90_000

@Injectable()
export class PairingBoard {
  private readonly store: Store
  /** Events are noted in their order. */
  private noted: Promise<void> = Promise.resolve()

  constructor(
    bot: Bot,
    @Inject(PINO) private readonly log: Logger,
  ) {
    this.store = bot.store
  }

  @OnEvent('provider:pairing')
  offered({ bot, kind, value }: BotEvents['provider:pairing']) {
    if (bot === PAIRED_BOT) this.note({ kind, value })
  }

  @OnEvent('provider:state')
  changed({ bot, status, reason, final }: BotEvents['provider:state']) {
    if (bot !== PAIRED_BOT) return
    if (status === 'open') this.note({ kind: 'connected' })
    else if (final === true) this.note({ kind: 'closed', reason: reason ?? status })
    // One that was stopped says nothing: the next leader may be connected already.
    else if (reason !== 'stopped') this.note({ kind: 'connecting' })
  }

  async current(): Promise<Pairing> {
    const row = await this.store.getUser(ROW)
    if (row === null) return { kind: 'connecting' }
    const { pairing, at } = row.data as { pairing: Pairing; at: number }
    const isOld = systemClock.now() - at > GOOD_MS
    return 'value' in pairing && isOld ? { kind: 'connecting' } : pairing
  }

  private note(pairing: Pairing): void {
    this.noted = this.noted
      .then(() => this.write(pairing))
      .catch((error: unknown) =>
        this.log.warn({ err: error }, 'the pairing page could not be brought up to date'),
      )
  }

  private async write(pairing: Pairing): Promise<void> {
    const data = { pairing, at: systemClock.now() }
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const row = await this.store.getUser(ROW)
      if ((await this.store.setUserIf(ROW, data, row?.revision ?? null)) !== null) return
    }
    throw new Error('too many others wrote at the same time')
  }
}
