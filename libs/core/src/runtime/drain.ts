/**
 * The orderly end (N5, scenario 27): nothing new is taken, what runs may finish; what does not is suspended with what
 * it staged, and its turn released, so that the next replica goes on at once; then the transport is disconnected and
 * the leadership resigned. All within `drainMs`: what hangs beyond it is not waited for.
 */
import type { Clock } from '../contracts/clock.js'
import { LeaseLostError } from '../contracts/errors.js'
import type { ConversationEngine } from '../conversation/port.js'
import type { Inbox } from './inbox.js'
import type { ProviderSession } from './provider-session.js'
import type { SpanFactory } from './span-factory.js'
import { within } from './within.js'

export interface DrainParts {
  inbox: Inbox
  spans: SpanFactory
  engine: ConversationEngine
  session: ProviderSession
  clock: Clock
  drainMs: number
  provider: string
  /** What else may finish in the same time: tasks. */
  besides: Promise<unknown>
}

/** How it ended. */
export interface Drained {
  /** What ran had finished in time, with nothing to cut. */
  finished: boolean
  /** Chats whose work was cut. */
  cut: string[]
  /** The transport has stopped: if not, its account may still be connected here. */
  disconnected: boolean
}

/** Of the time there is, what is kept for suspending, disconnecting and resigning. */
const RESERVE = 0.25

/** Never rejects. */
export async function drain(parts: DrainParts): Promise<Drained> {
  const { inbox, spans, engine, session, clock, drainMs, provider, besides } = parts
  const endsAt = clock.monotonic() + drainMs
  inbox.close()
  const allDone = Promise.all([inbox.whenIdle(), besides])
  const cut = new Set<string>()
  const finished = await within(clock, drainMs * (1 - RESERVE), allDone)
  if (!finished) {
    inbox.giveUpWaiting()
    for (const span of spans.live) {
      cut.add(span.key)
      span.stop(new LeaseLostError(span.key, 'stopped'))
    }
    await within(clock, (drainMs * RESERVE) / 2, inbox.whenIdle())
  }
  // Copies and timers go; checkpoints and markers stay (H4).
  engine.stop(new LeaseLostError(provider, 'stopped'))
  // All the time there is: until it has disconnected the account is still this replica's.
  const left = Math.max((drainMs * RESERVE) / 2, endsAt - clock.monotonic())
  const disconnected = await within(clock, left, session.stop())
  return { finished, cut: [...cut], disconnected }
}
