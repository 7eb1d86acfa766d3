/**
 * How a session lies in a store, as data. Pure.
 *
 * One row, the head, says what is valid: which pages there are and in which of their two slots, and the latest
 * changes (`tail`) besides. A batch of changes is one write of the head; so it is there wholly or not at all (Z9).
 * When the tail has grown, its records move into their pages: each page is written into the slot that the head does
 * *not* name, then the head names those slots and has an empty tail. Whoever dies in between leaves rows that no head
 * names. A record's page follows from its name, so that a chat's keys are rewritten with few others.
 */
import { z } from 'zod'

export const PAGES = 128
/** Of the tail, in UTF-16 units: it is written again with each batch. */
export const TAIL_LIMIT = 32_768

export type Slot = 'a' | 'b'

export interface SessionHead {
  /** Page number → slot. */
  pages: Record<string, Slot>
  /** Newer than the pages; null: removed. */
  tail: Record<string, string | null>
}

const headSchema = z.object({
  pages: z.record(z.string().regex(/^\d+$/), z.enum(['a', 'b'])),
  tail: z.record(z.string(), z.string().nullable()),
})
const pageSchema = z.object({ records: z.record(z.string(), z.string()) })

/** @returns null if it is none. */
export function readHead(state: unknown): SessionHead | null {
  return headSchema.safeParse(state).data ?? null
}

/** @returns null if it is none. */
export function readPage(state: unknown): Record<string, string> | null {
  return pageSchema.safeParse(state).data?.records ?? null
}

/** FNV-1a. */
export function pageOf(record: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < record.length; at++) hash = Math.imul(hash ^ record.charCodeAt(at), 0x01000193)
  return (hash >>> 0) % PAGES
}

export interface NextWrite {
  head: SessionHead
  /** To be written before the head. */
  pages: { page: number; slot: Slot; records: Record<string, string> }[]
}

/** @param stored what the session consists of without these changes. */
export function nextWrite(
  head: SessionHead,
  stored: ReadonlyMap<string, string>,
  changes: ReadonlyMap<string, string | null>,
): NextWrite {
  const tail = { ...head.tail, ...Object.fromEntries(changes) }
  if (sizeOf(tail) <= TAIL_LIMIT) return { head: { pages: head.pages, tail }, pages: [] }
  const touched = new Map<number, Record<string, string>>()
  for (const name of Object.keys(tail)) touched.set(pageOf(name), {})
  for (const [name, text] of [...stored, ...changes]) {
    const page = touched.get(pageOf(name))
    if (page === undefined) continue
    if (text === null) delete page[name]
    else page[name] = text
  }
  const pages = [...touched].map(([page, content]) => {
    const slot: Slot = head.pages[page] === 'a' ? 'b' : 'a'
    return { page, slot, records: content }
  })
  const slots = Object.fromEntries(pages.map(({ page, slot }) => [String(page), slot]))
  return { head: { pages: { ...head.pages, ...slots }, tail: {} }, pages }
}

function sizeOf(tail: SessionHead['tail']): number {
  let size = 0
  for (const [name, text] of Object.entries(tail)) size += name.length + (text?.length ?? 0)
  return size
}
