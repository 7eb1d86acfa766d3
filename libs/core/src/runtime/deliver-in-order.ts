/**
 * Hands a batch of inbound messages to the runtime: in the platform's order within a chat, chats side by side,
 * so that one slow chat does not hold up the others of its batch (T1, T2).
 */
import { CoordinationUnavailableError } from '../contracts/errors.js'

export interface Delivery {
  /** Deliveries of one key are made one after the other. */
  key: string
  run: () => Promise<void>
}

export type DeliveryOutcome =
  | { status: 'accepted' }
  | { status: 'failed'; error: unknown }
  /** An earlier one of its key failed, or `signal` aborted: it was not tried, so that none overtakes. */
  | { status: 'held' }

/** Never rejects. @returns one outcome for each delivery, in the order given. */
export async function deliverInOrder(
  deliveries: readonly Delivery[],
  signal?: AbortSignal,
): Promise<DeliveryOutcome[]> {
  const chains = new Map<string, Promise<DeliveryOutcome>>()
  return Promise.all(
    deliveries.map((delivery) => {
      const before = chains.get(delivery.key)
      const outcome =
        before === undefined ? deliver(delivery, signal) : deliverAfter(before, delivery, signal)
      chains.set(delivery.key, outcome)
      return outcome
    }),
  )
}

async function deliverAfter(
  before: Promise<DeliveryOutcome>,
  delivery: Delivery,
  signal: AbortSignal | undefined,
): Promise<DeliveryOutcome> {
  return (await before).status === 'accepted' ? deliver(delivery, signal) : { status: 'held' }
}

async function deliver(delivery: Delivery, signal: AbortSignal | undefined): Promise<DeliveryOutcome> {
  if (signal?.aborted === true) return { status: 'held' }
  try {
    await delivery.run()
    return { status: 'accepted' }
  } catch (error) {
    return { status: 'failed', error }
  }
}

/** True for the reason of an orderly end, of this replica's leadership or of its bot: nothing went wrong. */
export function isOrderlyStop(reason: unknown): boolean {
  return reason instanceof CoordinationUnavailableError && reason.details.why === 'stopped'
}
