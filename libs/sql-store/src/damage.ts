/** Values that cannot be read: reported, and kept for a look out of the way, so that nobody stumbles over them twice. */
import type { Logger } from '@botmesh/core'
import type { SqlFlavor } from './flavor.js'
import { escapeName } from './names.js'
import type { Session } from './sql-link.js'
import type { Damage } from './stored-values.js'

/** Moves damaged checkpoints, markers and outbox entries of a chat to the table `damaged`. */
export async function moveAside(
  db: Session,
  flavor: SqlFlavor,
  logger: Logger,
  chatKey: string,
  damaged: readonly Damage[],
): Promise<void> {
  for (const one of damaged) {
    logger.error({ ...one }, 'a stored value could not be read and was moved aside')
    const chat = escapeName(chatKey)
    if (one.what === 'checkpoint') {
      const row = await db
        .selectFrom('chats')
        .select('checkpoint as value')
        .where('k', '=', chat)
        .executeTakeFirst()
      await keep(db, flavor, one, row?.value)
      const none = { checkpoint: null, checkpoint_until: null, record_id: null }
      await db
        .updateTable('chats')
        .set(none)
        .where('k', '=', chat)
        .where('checkpoint', '=', row?.value ?? '')
        .execute()
    } else if (one.what === 'marker') {
      const row = await db
        .selectFrom('chats')
        .select('marker as value')
        .where('k', '=', chat)
        .executeTakeFirst()
      await keep(db, flavor, one, row?.value)
      const none = { marker: null, marker_until: null }
      await db
        .updateTable('chats')
        .set(none)
        .where('k', '=', chat)
        .where('marker', '=', row?.value ?? '')
        .execute()
    } else if (one.what === 'outbox') {
      const name = escapeName(one.key)
      const row = await db
        .selectFrom('outbox')
        .selectAll()
        .where('chat', '=', chat)
        .where('name', '=', name)
        .executeTakeFirst()
      await keep(db, flavor, one, row && JSON.stringify(row))
      await db.deleteFrom('outbox').where('chat', '=', chat).where('name', '=', name).execute()
    }
  }
}

/** Notes a damaged value. */
export async function keep(
  db: Session,
  flavor: SqlFlavor,
  { what, key }: Damage,
  value: string | null | undefined,
): Promise<void> {
  await db
    .insertInto('damaged')
    .values({ what, name: key, value: value ?? null, at: flavor.nowMs })
    .execute()
}
