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
/** Those whose last user is ending them, with that use: they may still say that they are begun. */
const ending = new WeakMap<object, Use>()

/**
 * @param idle nobody has begun `resource` yet, as far as it says.
 * @returns true if its last user will end it
 */
export function beginUse(resource: object, idle: boolean): boolean {
  const use = uses.get(resource) ?? { users: 0, begunHere: idle || ending.has(resource) }
  uses.set(resource, use)
  use.users++
  return use.begunHere
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
  ending.set(resource, use)
  try {
    await end()
  } finally {
    if (ending.get(resource) === use) ending.delete(resource)
  }
}
