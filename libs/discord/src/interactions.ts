/**
 * Commands and buttons that wait for their answer. Discord wants each acknowledged within 3 s of being made, which a
 * bot with work to do cannot promise: so each is deferred at once, and answered through its token, which lives for 15
 * minutes. Only the process that received an interaction has its token; another one answers in the channel.
 */
import { SendError, type Clock, type Logger } from '@botmesh/core'
import { Routes } from 'discord.js'
import type { CallOptions, DiscordClient } from './discord.client.js'
import type { PendingInteraction } from './parse-inbound.js'
import type { RenderedMessage } from './render-outbound.js'

/** "Thinking…", replaced by the answer; for a button nothing shows. */
const DEFERRED_MESSAGE = 5
const DEFERRED_UPDATE = 6
/** Discord's 15 minutes, less what an answer may take to get there. */
const TOKEN_MS = 14.5 * 60_000
const MOST_PENDING = 10_000
/** Discord does not know the interaction (any more): it came too late, or its token has run out. */
const GONE = new Set(['10062', '10015', '50027'])

interface Pending {
  interaction: PendingInteraction
  until: number
  /** Resolves to false if Discord did not take the acknowledgement. */
  acknowledged: Promise<boolean>
  /** The deferred answer of a command is still to be filled in. */
  open: boolean
}

export class Interactions {
  private readonly pending = new Map<string, Pending>()

  constructor(
    private readonly provider: string,
    private readonly client: DiscordClient,
  ) {}

  /** Acknowledges it, once, however often it is delivered. Never rejects. */
  receive(interaction: PendingInteraction, clock: Clock, logger: Logger): void {
    this.sweep(clock.monotonic())
    if (this.pending.has(interaction.messageId)) return
    this.pending.set(interaction.messageId, {
      interaction,
      until: clock.monotonic() + TOKEN_MS,
      acknowledged: this.acknowledge(interaction, logger),
      open: interaction.kind === 'command',
    })
  }

  /**
   * Sends `messages` as the answer to an interaction: the first in the place of "thinking…", the others after it.
   * @returns the id of the last, or undefined if there is no such interaction that can be answered.
   */
  async answer(
    inboundId: string | undefined,
    chatId: string,
    messages: readonly RenderedMessage[],
    now: number,
    options: CallOptions,
  ): Promise<string | undefined> {
    const pending = inboundId === undefined ? undefined : this.pending.get(inboundId)
    if (pending === undefined || pending.interaction.chatId !== chatId || pending.until <= now)
      return undefined
    if (!(await pending.acknowledged)) return undefined
    options.signal?.throwIfAborted()
    let id: string | undefined
    for (const message of messages) {
      try {
        id = await this.write(pending, withoutQuote(message), options)
        pending.open = false
      } catch (error) {
        if (id !== undefined) throw this.cutShort(error)
        if (!(error instanceof SendError) || !GONE.has(error.details.platformCode ?? '')) throw error
        // Its token ran out earlier than told: the answer goes to the channel.
        pending.until = 0
        return undefined
      }
    }
    return id
  }

  private write(pending: Pending, message: RenderedMessage, options: CallOptions): Promise<string> {
    const { applicationId, token } = pending.interaction
    return pending.open
      ? // Filling in the same place twice changes nothing.
        this.client.write('PATCH', Routes.webhookMessage(applicationId, token), message, {
          ...options,
          repeatable: true,
        })
      : this.client.write('POST', `${Routes.webhook(applicationId, token)}?wait=true`, message, options)
  }

  private async acknowledge({ id, token, kind }: PendingInteraction, logger: Logger): Promise<boolean> {
    const type = kind === 'command' ? DEFERRED_MESSAGE : DEFERRED_UPDATE
    try {
      await this.client.act('the acknowledgement', 'POST', Routes.interactionCallback(id, token), {
        body: { type },
      })
      return true
    } catch (error) {
      // Answered in the channel then. The error is of this package, and has no token in it.
      logger.debug(
        { err: error, provider: this.provider },
        'discord: an interaction could not be acknowledged',
      )
      return error instanceof SendError && error.details.platformCode === ALREADY_ACKNOWLEDGED
    }
  }

  private sweep(now: number): void {
    for (const [id, { until }] of this.pending) {
      // In the order of their ends.
      if (until > now && this.pending.size < MOST_PENDING) break
      this.pending.delete(id)
    }
  }

  private cutShort(cause: unknown): SendError {
    return new SendError(
      'Only the first part of the answer arrived.',
      { provider: this.provider, outcome: 'uncertain' },
      cause,
    )
  }
}

const ALREADY_ACKNOWLEDGED = '40060'

/** An answer to an interaction quotes it by itself. */
function withoutQuote({ body, files }: RenderedMessage): RenderedMessage {
  const { message_reference: _reference, ...rest } = body
  return { body: rest, files }
}
