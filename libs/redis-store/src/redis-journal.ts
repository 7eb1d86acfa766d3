/** The journal and the outbox in Redis (D1–D3): see `scripts/journal.lua` and `scripts/chat-state.lua`. */
import {
  Journal,
  Outbox,
  unreadableLetter,
  type DeadLetter,
  type JournalRecord,
  type Message,
  type OutboxEntry,
} from '@botmesh/core'
import type { Entry } from './batch-queue.js'
import { outboxHash, recordJson } from './effects-args.js'
import { escapeName, unescapeName } from './keys.js'
import type { StoreCalls } from './store-calls.js'
import type { StoreShards } from './store-shards.js'
import { readOutboxEntry, readRecord, type Damage } from './stored-values.js'

type RecordValues = readonly (string | null)[]

export class RedisJournal extends Journal {
  constructor(private readonly calls: StoreShards) {
    super()
  }

  record(key: string, message: Message): Promise<'recorded' | 'duplicate'> {
    return this.calls.of(key).entry('record', key, {
      token: `J${message.timestamp}`,
      more: [escapeName(message.id), recordJson(message)],
      read: (line) => (line === '+' ? 'recorded' : 'duplicate'),
    })
  }

  async oldest(key: string): Promise<JournalRecord | null> {
    for (;;) {
      const values = await this.look(key, '')
      if (!values) return null
      const damaged: Damage[] = []
      const record = readRecord(key, values, damaged)
      if (record) return record
      // It would block its chat for ever: among the dead letters somebody can look at it.
      this.calls.options.logger.error({ key, damaged }, 'a journal record could not be read and is given up')
      await this.bury(key, values[0] ?? '')
    }
  }

  async find(key: string, id: string): Promise<JournalRecord | null> {
    const values = await this.look(key, escapeName(id))
    return values && readRecord(key, values, [])
  }

  private look(key: string, id: string): Promise<RecordValues | null> {
    return this.calls.of(key).entry('find', key, {
      token: `Q${id}`,
      read: (line, payloads) => {
        if (line !== 'Qj') return null
        payloads.at += 4
        return payloads.values.slice(payloads.at - 4, payloads.at)
      },
    })
  }

  /** `id` as stored. */
  private async bury(key: string, id: string): Promise<void> {
    await this.calls.of(key).entry('fail', key, buryEntry(id))
  }

  fail(key: string, id: string, fence: number, error: string, retryMs: number | null): Promise<boolean> {
    return this.calls.of(key).entry('fail', key, {
      token: `B${fence}`,
      more: [
        escapeName(id),
        escapeName(error === '' ? 'unknown' : error),
        retryMs === null ? '' : String(retryMs),
        '',
      ],
      read: (line) => line === 'B',
    })
  }

  async stranded(idleMs: number, limit: number, keyPrefix = ''): Promise<string[]> {
    if (limit < 1) return []
    const asked = this.calls.all().map(async (calls) => {
      const { keys } = calls.options
      const args = [keys.base, String(idleMs), String(limit), escapeName(keyPrefix)]
      return ((await calls.script('stranded', keys.holders, args)) as string[]).map(unescapeName)
    })
    // A shard that cannot be reached does not hold up the chats of the others.
    const answers = await Promise.allSettled(asked)
    const found = inTurns(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : [])))
    const failed = answers.find((answer) => answer.status === 'rejected')
    if (failed && found.length === 0) throw failed.reason
    return found.slice(0, limit)
  }

  async deadLetters(limit: number): Promise<DeadLetter[]> {
    if (limit < 1) return []
    const letters = await Promise.all(this.calls.all().map((calls) => this.deadLettersIn(calls, limit)))
    return letters
      .flat()
      .toSorted((one, other) => one.at - other.at)
      .slice(0, limit)
  }

  private async deadLettersIn(calls: StoreCalls, limit: number): Promise<DeadLetter[]> {
    const { keys } = calls.options
    const args = [keys.base, 'list', String(limit)]
    const listed = (await calls.script('dead-letters', keys.holders, args)) as string[]
    const letters: DeadLetter[] = []
    for (let at = 0; at + 2 < listed.length; at += 3) {
      const [chat = '', id = ''] = (listed[at] ?? '').split(' ')
      const [, attempts = '0', error = '', content = ''] =
        /^(\d+) (\S+) (.*)$/s.exec(listed[at + 2] ?? '') ?? []
      const damaged: Damage[] = []
      const key = unescapeName(chat)
      const record = readRecord(key, [id, content, `${attempts} 0`, error], damaged)
      const when = Number(listed[at + 1])
      if (record) {
        letters.push({ key, record, at: when })
        continue
      }
      const [wrong = { error: 'it cannot be read' }] = damaged
      const known = {
        ...{ seq: Number.parseInt(content, 10) || 0, attempts: Number(attempts) },
        ...(error === '' ? {} : { lastError: unescapeName(error) }),
      }
      letters.push(unreadableLetter(key, unescapeName(id), when, wrong.error, known))
    }
    return letters
  }

  retry(key: string, id: string): Promise<boolean> {
    return this.settleLetter('retry', key, id)
  }

  discard(key: string, id: string): Promise<boolean> {
    return this.settleLetter('discard', key, id)
  }

  private async settleLetter(what: 'retry' | 'discard', key: string, id: string): Promise<boolean> {
    const calls = this.calls.of(key)
    const { keys, place } = calls.options
    const args = [keys.base, what, escapeName(key), escapeName(id), String(place.settings.windowMs)]
    return (await calls.script('dead-letters', keys.holders, args)) === 1
  }
}

/** One of each list, then the next of each: none is at the end for ever. */
function inTurns<T>(lists: readonly T[][]): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_, n) => lists.flatMap((list) => list.slice(n, n + 1))).flat()
}

/** Gives up a record that cannot be read, whoever works on its chat; `id` as stored. */
export function buryEntry(id: string): Omit<Entry<string>, 'chat'> {
  return { token: 'B0', more: [id, 'damaged', '', 'u'], read: (line) => line }
}

export class RedisOutbox extends Outbox {
  constructor(private readonly calls: StoreShards) {
    super()
  }

  async entries(chatKey: string): Promise<OutboxEntry[]> {
    const calls = this.calls.of(chatKey)
    const args = [this.keyOf(chatKey)]
    const stored = await calls.command<Record<string, string>>('entries', 'hgetall', args)
    const damaged: Damage[] = []
    const entries = Object.entries(stored).flatMap(([key, value]) => {
      const entry = readOutboxEntry(`${chatKey} ${unescapeName(key)}`, value, damaged)
      return entry ? [entry] : []
    })
    if (damaged.length > 0) await calls.moveAside(chatKey, damaged)
    return entries
  }

  async settle(chatKey: string, key: string, outcome: Parameters<Outbox['settle']>[2]): Promise<void> {
    const field = escapeName(key)
    const calls = this.calls.of(chatKey)
    const value = await calls.command<string | null>('settle', 'hget', [this.keyOf(chatKey), field])
    const entry = value === null ? null : readOutboxEntry(key, value, [])
    if (!entry) return
    const { error: _error, sent: _sent, ...rest } = entry
    const settled: OutboxEntry = { ...rest, ...outcome }
    await calls.entry('settle', chatKey, {
      token: `V${field}`,
      more: [outcome.status, JSON.stringify(settled), outboxHash(entry)],
      read: (line) => line,
    })
  }

  private keyOf(chatKey: string): string {
    return `${this.calls.of(chatKey).options.keys.base}o:${escapeName(chatKey)}`
  }
}
