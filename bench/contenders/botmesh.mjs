/** Botmesh: take and release, with the parts that `mode` names. */
import { RedisCoordinator, RedisStore } from '@botmesh/redis-store'

/**
 * @param mode `full`: with an inbound id that is committed (session check, dedupe, hybrid fence, receipt).
 *   `plain`: take and release. `state`: take with the chat's state, commit of a checkpoint of 400 bytes.
 */
export async function start({ port, prefix, mode = 'full', leaseMs = 15_000, replica }) {
  const url = `redis://127.0.0.1:${port}`
  const coordinator =
    mode === 'state'
      ? new RedisStore({ url, prefix }).coordinator({ leaseMs, replicaId: replica })
      : new RedisCoordinator({ url, prefix, leaseMs, replicaId: replica })
  await coordinator.start()
  let messages = 0
  const filler = 'x'.repeat(230)
  return {
    async turn(key, work) {
      const id = mode === 'full' ? `${replica}.${(messages += 1)}` : undefined
      const options = mode === 'state' ? { waitMs: 60_000, read: {} } : { waitMs: 60_000, dedupeId: id }
      const turn = await coordinator.turns.take(key, options)
      const result = work === undefined ? undefined : await work()
      if (mode === 'state') {
        const { fence, state } = turn
        const checkpoint = {
          v: 1,
          name: 'order',
          kind: 'flow',
          step: 'size',
          visit: 1,
          state: { filler },
          wait: { question: 0, sends: 1 },
          fingerprint: '0123456789abcdef',
          revision: `${fence}:1`,
        }
        const done = await turn.commit({
          checkpoint,
          expectedRevision: state?.revision ?? turn.revision ?? null,
        })
        if (done.outcome !== 'committed') throw new Error(`refused: ${done.why}`)
      } else if (id !== undefined) {
        const done = await turn.commit({ inboundId: id })
        if (done.outcome !== 'committed') throw new Error(`refused: ${done.why}`)
      } else {
        await turn.release()
      }
      return { fence: turn.fence, result }
    },
    coordinator,
    stop: () => coordinator.stop(),
  }
}
