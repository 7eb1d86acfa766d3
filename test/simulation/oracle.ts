/**
 * What must hold at the end of a simulated life (I1, I3, I12, I13; scenarios 5, 13, 14, 15): nothing said twice, nothing
 * lost and everything in the order of arrival with durability, no older holder speaking after a newer one, no chat stuck.
 */
import { BotmeshError, SendError } from '@botmesh/core'

export interface Spoken {
  chatId: string
  text: string
  /** Of the turn that it was said under. */
  fence: number | null
}

export interface Seen {
  durable: boolean
  spoken: readonly Spoken[]
  errors: readonly unknown[]
  /** Messages that the platform was told to be received. */
  accepted: readonly { id: string; chatId: string }[]
  /** Messages that nobody took in the end. */
  unaccepted: readonly string[]
  /** The messages written after everything had calmed down. */
  last: readonly string[]
  /** A message's place in its chat's journal. */
  seq: (chatId: string, id: string) => number | null
  /** Answers that flows have and did not get to speak of. */
  kept: readonly string[]
  /** A record of the chat that is still open. */
  pending: (chatId: string) => Promise<string | null>
  chats: readonly string[]
  /** Chats that still wait, long after the timeout of their question. */
  overdue: readonly string[]
}

export async function faultsOf(seen: Seen): Promise<string[]> {
  const faults = [...doubled(seen), ...overlaps(seen), ...surprises(seen), ...stuck(seen)]
  // A timeout fires though every replica that knew it died (D1, T5).
  if (seen.durable) faults.push(...seen.overdue.map((chatId) => `timeout lost in ${chatId}`))
  if (seen.durable) faults.push(...lost(seen), ...disorder(seen), ...(await open(seen)))
  return faults
}

/** Without durability, a step that is repeated after a death says again what it said (H11). */
const REPEATABLE = /^(Colour|Done)/

function doubled({ durable, spoken }: Seen): string[] {
  const before = new Set<string>()
  return spoken.flatMap(({ chatId, text }) => {
    const known = before.has(`${chatId} ${text}`) && (durable || !REPEATABLE.test(text))
    before.add(`${chatId} ${text}`)
    return known ? [`doubled: ${text} to ${chatId}`] : []
  })
}

/** I1: whoever was granted the chat later has spoken already. */
function overlaps({ spoken }: Seen): string[] {
  const highest = new Map<string, number>()
  return spoken.flatMap(({ chatId, text, fence }) => {
    const before = highest.get(chatId) ?? 0
    if (fence === null) return [`without a turn: ${text}`]
    if (fence < before) return [`overlap: ${text} to ${chatId} under ${fence} after ${before}`]
    highest.set(chatId, fence)
    return []
  })
}

/** An answer may be spoken of only later, by another message's turn; or not yet. */
function lost({ spoken, accepted, errors, kept }: Seen): string[] {
  const toldOf = new Set(
    [...spoken.map(({ text }) => text), ...kept].flatMap((text) => text.match(/\bm\d+\b/g) ?? []),
  )
  const inDoubt = errors.filter(isInDoubt).map(String)
  return accepted.flatMap(({ id }) => {
    if (toldOf.has(id)) return []
    return inDoubt.some((text) => text.includes(`r:${id}/`)) ? [] : [`lost: ${id}`]
  })
}

function disorder({ spoken, seq }: Seen): string[] {
  const faults: string[] = []
  const last = new Map<string, { seq: number; id: string }>()
  const answered = new Set<string>()
  for (const { chatId, text } of spoken) {
    const id = idOf(text)
    if (answered.has(id)) continue
    answered.add(id)
    const place = seq(chatId, id)
    if (place === null) {
      faults.push(`never recorded: ${id}`)
      continue
    }
    const before = last.get(chatId)
    if (before !== undefined && before.seq > place) faults.push(`order: ${id} after ${before.id}`)
    last.set(chatId, { seq: place, id })
  }
  return faults
}

async function open({ chats, pending }: Seen): Promise<string[]> {
  const records = await Promise.all(chats.map(pending))
  return records.flatMap((id) => (id === null ? [] : [`still open: ${id}`]))
}

function stuck({ unaccepted, last, spoken }: Seen): string[] {
  const silent = last.filter((id) => !spoken.some(({ text }) => idOf(text) === id))
  return [
    ...unaccepted.map((id) => `not accepted: ${id}`),
    ...silent.map((id) => `stuck: no answer to ${id}`),
  ]
}

/** What is reported must be something that such a life brings about. */
function surprises({ errors }: Seen): string[] {
  const expected = (error: unknown) =>
    error instanceof SendError || (error instanceof BotmeshError && error.retryable)
  return errors.filter((error) => !expected(error)).map((error) => `unexpected: ${String(error)}`)
}

function isInDoubt(error: unknown): boolean {
  return error instanceof SendError && error.outcome === 'uncertain'
}

/** The message that a text is due to. */
function idOf(text: string): string {
  return /\((\w+)\)$/.exec(text)?.[1] ?? ''
}
