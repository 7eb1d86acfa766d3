/**
 * Several bots may share one coordinator or store: it is counted, and the last bot that stops ends it, if a bot had
 * begun it. What the application began itself stays its own.
 */
import type { Coordinator } from '../contracts/coordinator.js'

interface Use {
  users: number
  begunHere: boolean
}

const uses = new WeakMap<object, Use>()
/** Their last user is ending them: they may still say that they are begun. */
const ending = new WeakSet<object>()

/** @param idle nobody has begun `resource` yet, as far as it says. */
export function beginUse(resource: object, idle: boolean): void {
  const use = uses.get(resource)
  if (use === undefined) uses.set(resource, { users: 1, begunHere: idle || ending.has(resource) })
  else use.users++
}

/** Nobody has begun this coordinator, or whoever had has stopped it again: it is for its next user to stop. */
export function isIdle({ status: { status } }: Coordinator): boolean {
  return status === 'idle' || status === 'stopped'
}

/** True while somebody uses `resource`. */
export function isInUse(resource: object): boolean {
  return uses.has(resource)
}

/** Calls `end` if the caller is the last user and `resource` was begun here. @throws what `end` throws. */
export async function endUse(resource: object, end: () => Promise<void> | undefined): Promise<void> {
  const use = uses.get(resource)
  if (use === undefined) return
  use.users--
  if (use.users > 0) return
  uses.delete(resource)
  if (!use.begunHere) return
  ending.add(resource)
  try {
    await end()
  } finally {
    ending.delete(resource)
  }
}
