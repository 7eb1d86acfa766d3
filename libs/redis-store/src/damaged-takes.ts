/** What a take reads and cannot be understood is moved out of the way by whoever reads it. */
import type { Logger, TakeReply } from '@botmesh/core'
import type { BatchQueue } from './batch-queue.js'
import { escapeName } from './keys.js'
import { buryEntry } from './redis-journal.js'
import { asideEntry } from './store-calls.js'

/**
 * @returns the answer, whose state says what is damaged. Checkpoints and markers stay until who works under the turn reports
 * them (`RedisStore.setAside`): a turn that is given back unseen would report nothing.
 */
export async function clearedAway(
  key: string,
  answer: Promise<TakeReply>,
  batches: BatchQueue,
  logger: Logger,
): Promise<TakeReply> {
  const reply = await answer
  const damaged = reply.outcome === 'granted' ? (reply.state?.damaged ?? []) : []
  for (const one of damaged.filter(({ what }) => what !== 'checkpoint' && what !== 'marker')) {
    const chat = escapeName(key)
    const entry =
      one.what === 'record' ? buryEntry(one.key.slice(one.key.lastIndexOf(' ') + 1)) : asideEntry(one)
    if (!entry) continue
    batches.add('', { ...entry, chat }).catch((error: unknown) => {
      logger.warn({ err: error, ...one }, 'a damaged value could not be moved aside yet')
    })
  }
  return reply
}
