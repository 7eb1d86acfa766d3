/** What a take reads and cannot be understood is moved out of the way by whoever reads it. */
import type { ChatState, Logger } from '@botmesh/core'
import type { BatchQueue } from './batch-queue.js'
import { escapeName } from './keys.js'
import { buryEntry } from './redis-journal.js'
import { asideEntry } from './store-calls.js'

/**
 * @param damaged what the state of a granted take of `key` names as damaged. Checkpoints and markers stay until who works
 * under the turn reports them (`RedisStore.setAside`): a turn that is given back unseen would report nothing.
 */
export function clearAway(
  key: string,
  damaged: NonNullable<ChatState['damaged']>,
  batches: BatchQueue,
  logger: Logger,
): void {
  for (const one of damaged.filter(({ what }) => what !== 'checkpoint' && what !== 'marker')) {
    const chat = escapeName(key)
    const entry =
      one.what === 'record' ? buryEntry(one.key.slice(one.key.lastIndexOf(' ') + 1)) : asideEntry(one)
    if (!entry) continue
    batches.add('', { ...entry, chat }).catch((error: unknown) => {
      logger.warn({ err: error, ...one }, 'a damaged value could not be moved aside yet')
    })
  }
}
