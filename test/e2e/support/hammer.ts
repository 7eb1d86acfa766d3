/** Takes and releases turns of one chat as fast as they come, and looks whether anybody else is inside (scenario 1). */
import type { Coordinator } from '@botmesh/core'
import type { Redis } from 'ioredis'

export interface Hammered {
  turns: number
  /** Longest wait for a grant. */
  longestMs: number
  /** Times that somebody else was found inside. */
  overlaps: number
  /** Times that a fence did not grow. */
  unordered: number
  failures: string[]
}

/** @param witness keeps who is inside: a connection that the coordinator does not know. */
export async function hammer(
  coordinator: Coordinator,
  witness: Redis,
  key: string,
  turns: number,
): Promise<Hammered> {
  const found: Hammered = { turns: 0, longestMs: 0, overlaps: 0, unordered: 0, failures: [] }
  const [inside, last] = [`witness:${key}:inside`, `witness:${key}:last`]
  const one = async () => {
    const asked = performance.now()
    const turn = await coordinator.turns.take(key, { waitMs: '5s' })
    if (turn === 'duplicate') throw new Error('no message was named')
    found.longestMs = Math.max(found.longestMs, performance.now() - asked)
    const [now, before] = await Promise.all([witness.incr(inside), witness.getset(last, String(turn.fence))])
    if (now !== 1) found.overlaps += 1
    if (Number(before ?? 0) >= turn.fence) found.unordered += 1
    await witness.decr(inside)
    await turn.release()
    found.turns += 1
  }
  // Two at a time: the release of one meets the take of the other, here and at the other replicas.
  const lane = async () => {
    for (let left = turns / 2; left > 0; left -= 1) await one()
  }
  await Promise.all([lane(), lane()]).catch((error: unknown) => found.failures.push(String(error)))
  return found
}
