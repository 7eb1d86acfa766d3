/** What a commit leaves among a chat's marks: its inbound id, and a receipt that answers a copy of it. */
import { sql, type Transaction } from 'kysely'
import type { CommitResult } from '@botmesh/core'
import type { SqlFlavor } from './flavor.js'
import { escapeName, unescapeName } from './names.js'
import type { Tables } from './tables.js'

export function inboundMark(id: string): string {
  return `i:${escapeName(id)}`
}

export function receiptMark(commitId: string): string {
  return `c:${escapeName(commitId)}`
}

/** `1` if records remain, else `0`; then `:` and the revision as stored, if there is one. */
export function writeReceipt({ revision, more }: Extract<CommitResult, { outcome: 'committed' }>): string {
  return `${more ? '1' : '0'}${revision === null ? '' : `:${escapeName(revision)}`}`
}

export function readReceipt(value: string): CommitResult {
  return {
    outcome: 'committed',
    revision: value[1] === ':' ? unescapeName(value.slice(2)) : null,
    more: value.startsWith('1'),
  }
}

export async function putMarks(
  tx: Transaction<Tables>,
  flavor: SqlFlavor,
  marks: Tables['marks'][],
): Promise<void> {
  const insert = tx.insertInto('marks').values(marks)
  await (
    flavor.kind === 'mysql'
      ? insert.onDuplicateKeyUpdate({
          until: sql`values(${sql.ref('until')})`,
          value: sql`values(${sql.ref('value')})`,
        })
      : insert.onConflict((conflict) =>
          conflict.columns(['chat', 'name']).doUpdateSet((eb) => ({
            until: eb.ref('excluded.until'),
            value: eb.ref('excluded.value'),
          })),
        )
  ).execute()
}

/** Drops the oldest committed ids of a chat that has more than `most`. */
export async function boundIds(tx: Transaction<Tables>, chat: string, most: number): Promise<void> {
  const ids = tx.selectFrom('marks').where('chat', '=', chat).where('name', 'like', 'i:%')
  const oldest = await ids
    .select('until')
    .orderBy('until', 'desc')
    .limit(sql.lit(1))
    .offset(sql.lit(most))
    .executeTakeFirst()
  if (oldest) {
    await tx
      .deleteFrom('marks')
      .where('chat', '=', chat)
      .where('name', 'like', 'i:%')
      .where('until', '<=', oldest.until)
      .execute()
  }
  await tx.updateTable('chats').set({ committed: most }).where('k', '=', chat).execute()
}
