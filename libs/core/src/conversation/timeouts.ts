/**
 * The timeout of a wait whose copies are all gone (ADR 8): the step of its checkpoint runs again, here, and its first
 * question rejects as it would have where it was asked.
 *
 * A later question's timeout ends up at the first one too: the answers before it are not stored (H11), and nobody is
 * there to be asked again. A fallback answers a message, and there is none: what cannot be resumed stays for the next.
 */
import type { Message } from '../contracts/message.js'
import { parseChatKey } from '../kernel/chat-key.js'
import { decideArrival } from '../kernel/handover-policy.js'
import { goOn, startFrom, type ArrivalHost } from './arrivals.js'
import type { TurnScope } from './port.js'
import { usable } from './usable.js'

export async function timeOutStored(engine: ArrivalHost, scope: TurnScope): Promise<void> {
  const { host, registry } = engine
  const { checkpoint } = usable(scope, host)
  if (checkpoint === null) return
  const definition = registry.find(checkpoint.name)
  const decision = decideArrival({ checkpoint, marker: null }, definition, host.options.forward)
  if (decision.act !== 'resume' || decision.mode === 'kept' || definition === null) {
    host.logger.warn(
      { key: scope.key, flow: checkpoint.name, step: checkpoint.step },
      'The timeout of a wait cannot act here: this code has no such step. The conversation stays for the next message.',
    )
    return
  }
  const start = startFrom(engine, scope, checkpoint, definition, decision)
  const address = parseChatKey(scope.key) ?? { chatId: scope.key }
  start.message = silentMessage(address, host.clock.now())
  const skipSends = checkpoint.wait?.sends ?? 0
  goOn(engine, scope, start, decision, { skipSends, timedOutMs: checkpoint.wait?.timeoutMs ?? 0 })
}

/** What `c.message` and `ctx.message` are where nobody has written: a message of this chat without content or id. */
export function silentMessage(
  { chatId, participant }: { chatId: string; participant?: string },
  timestamp: number,
): Message {
  return {
    id: '',
    chatId,
    from: participant ?? chatId,
    type: 'other',
    body: '',
    isGroup: participant !== undefined,
    ...(participant === undefined ? {} : { participant }),
    timestamp,
  }
}
