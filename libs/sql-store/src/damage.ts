/** Values that cannot be read: kept for a look out of the way, so that nobody stumbles over them twice. */
import type { SqlFlavor } from './flavor.js'
import { escapeName } from './names.js'
import type { Session } from './sql-link.js'
import { readChat, type Damage } from './stored-values.js'

/** Notes a damaged value in the table `damaged`, where it stays. */
export async function keep(
  db: Session,
  flavor: SqlFlavor,
  { what, key }: Pick<Damage, 'what' | 'key'>,
  value: string | null | undefined,
): Promise<void> {
  await db
    .insertInto('damaged')
    .values({ what, name: key, value: value ?? null, at: flavor.nowMs })
    .execute()
}

/** Moves a checkpoint or marker that cannot be read aside; its revision stays. @returns whether there was one. */
export async function setAside(
  db: Session,
  flavor: SqlFlavor,
  key: string,
  what: 'checkpoint' | 'marker',
): Promise<boolean> {
  const row = await db
    .selectFrom('chats')
    .selectAll()
    .select(flavor.nowMs.as('now'))
    .where('k', '=', escapeName(key))
    .executeTakeFirst()
  const damaged: Damage[] = []
  readChat(key, row, Number(row?.now), damaged)
  const value = row?.[what]
  if (!row || typeof value !== 'string' || !damaged.some((one) => one.what === what)) return false
  await keep(db, flavor, { what, key }, value)
  const none =
    what === 'checkpoint'
      ? { checkpoint: null, checkpoint_until: null, record_id: null, wake_at: null }
      : { marker: null, marker_until: null }
  // Only what was read: somebody may have written a good one meanwhile.
  await db.updateTable('chats').set(none).where('k', '=', row.k).where(what, '=', value).execute()
  return true
}

/** Moves outbox entries that cannot be read aside. */
export async function setEntriesAside(
  db: Session,
  flavor: SqlFlavor,
  chatKey: string,
  damaged: readonly Damage[],
): Promise<void> {
  const chat = escapeName(chatKey)
  for (const one of damaged) {
    if (one.what !== 'outbox') continue
    const name = escapeName(one.key.slice(chatKey.length + 1))
    const here = db.selectFrom('outbox').selectAll().where('chat', '=', chat).where('name', '=', name)
    const row = await here.executeTakeFirst()
    if (!row) continue
    await keep(db, flavor, one, JSON.stringify(row))
    await db.deleteFrom('outbox').where('chat', '=', chat).where('name', '=', name).execute()
  }
}
