/** Names (chats, ids, revisions, users) as they are stored: valid Unicode of a bounded length, told apart byte by byte. */
import { StoreError } from '@botmesh/core'

/** In characters, as stored. */
export const LONGEST_NAME = 1000

/** Half a surrogate pair has no UTF-8 form: the driver would store another character in its place. */
const STRANGE = /[~\p{Surrogate}]/gu

/** Reversible: `~` and halves of surrogate pairs become `~<code in hex>~`. @throws StoreError if it is too long. */
export function escapeName(name: string): string {
  const escaped = name.replace(STRANGE, (char) => `~${char.charCodeAt(0).toString(16)}~`)
  if (escaped.length <= LONGEST_NAME) return escaped
  throw new StoreError(
    `A name of ${escaped.length} characters ("${escaped.slice(0, 40)}…") is too long; at most ${LONGEST_NAME}.`,
    { store: 'mongo', operation: 'escapeName' },
  )
}

export function unescapeName(stored: string): string {
  return stored.replace(/~([0-9a-f]+)~/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
