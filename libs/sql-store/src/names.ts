/** Names as they are stored: printable ASCII without spaces, which every database compares byte by byte. */
import { StoreError } from '@botmesh/core'

/** Two of them fit into one index of MySQL (3,072 bytes). */
export const LONGEST_NAME = 1000

const PLAIN = /^[!-}]*$/

/** Reversible: everything outside `!` to `}` becomes `~<code point in hex>~`. @throws StoreError if it is too long. */
export function escapeName(name: string): string {
  const escaped = PLAIN.test(name)
    ? name
    : name.replace(/[^!-}]/gu, (char) => `~${(char.codePointAt(0) ?? 0).toString(16)}~`)
  if (escaped.length <= LONGEST_NAME) return escaped
  throw new StoreError(
    `A name of ${escaped.length} characters ("${escaped.slice(0, 40)}…") is too long; at most ${LONGEST_NAME}, non-ASCII ones count several times.`,
    { store: 'sql', operation: 'escapeName' },
  )
}

export function unescapeName(stored: string): string {
  return stored.replace(/~([0-9a-f]+)~/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
}
