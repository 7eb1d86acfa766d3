/**
 * A commit in one trip (Z4): fence, revision and receipt are compared by the statement that writes the chat's row, and
 * everything else is written only if it did. If it did not, nothing was stored, and the long way (`chat-state.ts`)
 * finds out why. How the parts travel together differs between the databases: see `UnitForm`.
 */
import { sql, type CompiledQuery, type RawBuilder } from 'kysely'
import type { CommitResult, Effects } from '@botmesh/core'
import { valuesOf } from './commit-values.js'
import type { SqlFlavor, UnitForm } from './flavor.js'
import { unescapeName } from './names.js'
import type { Session } from './sql-link.js'
import { outboxUpsert } from './sql-outbox.js'
import { slot, type Values } from './statements.js'
import { ACKNOWLEDGED, PENDING } from './tables.js'

export interface UnitLimits {
  dedupeMs: number
  receiptMs: number
  /** From so many noted ids on a chat is left to the long way, which drops the oldest. */
  ids: number
}

/** More of a kind would make too many forms. */
const MOST_PARTS = 8

export interface Unit {
  form: string
  values: Values
  build: (db: Session) => CompiledQuery[]
}

type Sql = RawBuilder<unknown>

/** @returns null for a commit that takes the long way: unusually large, or one that names a send twice. */
export function commitUnit(
  flavor: SqlFlavor,
  target: { chat: string; fence: number; commitId: string; effects: Effects },
  limits: UnitLimits,
): Unit | null {
  const { effects } = target
  const { checkpoint, expectedRevision = null, wakeInMs, marker, inboundId } = effects
  const { ack = [], outbox = [], forget = [] } = effects
  if (!flavor.unit || [ack, outbox, forget].some(({ length }) => length > MOST_PARTS)) return null
  const sends = [...outbox.map(({ key }) => key), ...forget]
  if (new Set(sends).size < sends.length) return null
  const parts = new Parts(flavor, flavor.unit, {
    checkpoint: checkpoint === undefined ? 'keep' : checkpoint === null ? 'clear' : 'write',
    expected: expectedRevision !== null,
    unwake: checkpoint === undefined && wakeInMs === null,
    marker: marker !== undefined,
    inbound: inboundId !== undefined,
    ...{ ack: ack.length, outbox: outbox.length, forget: forget.length, ids: limits.ids },
  })
  return {
    form: `commit ${JSON.stringify(parts.shape)}`,
    values: valuesOf(target, limits),
    build: (db) => parts.together(db),
  }
}

/** What the single row of a unit's result says. */
export function readUnit(row: unknown): CommitResult {
  const { shown, more } = row as { shown: string | null; more: unknown }
  return {
    outcome: 'committed',
    revision: shown === null ? null : unescapeName(shown),
    more: more === true || Number(more) === 1,
  }
}

interface Shape {
  checkpoint: 'keep' | 'clear' | 'write'
  expected: boolean
  unwake: boolean
  marker: boolean
  inbound: boolean
  ack: number
  outbox: number
  forget: number
  ids: number
}

const [chats, marks, journal, outbox] = (['chats', 'marks', 'journal', 'outbox'] as const).map((name) =>
  sql.table(name),
) as [Sql, Sql, Sql, Sql]
const chat = sql`${slot('chat')}`
const times = (count: number, make: (n: number) => Sql): Sql[] =>
  Array.from({ length: count }, (_, n) => make(n))
const columns = (...names: string[]): Sql => sql.join(names.map((name) => sql.ref(name)))

class Parts {
  private readonly now: Sql
  /** Where the others find the row that the first has written, and nothing if it has not. */
  private readonly source: Sql
  private readonly guard: Sql

  constructor(
    private readonly flavor: SqlFlavor,
    private readonly unit: UnitForm,
    readonly shape: Shape,
  ) {
    this.now = flavor.nowMs
    if (unit === 'statement') {
      this.source = sql`done where true`
      this.guard = sql`exists (select 1 from done)`
      return
    }
    this.guard = unit === 'packet' ? sql`@botmesh = 1` : sql`1 = 1`
    this.source = sql`${chats} where k = ${chat} and ${this.guard}`
  }

  together(db: Session): CompiledQuery[] {
    const writes = this.others()
    const update = this.update()
    const result = sql`select ${this.shown} as shown, ${this.more} as more from ${this.source}`
    if (this.unit === 'sequence') {
      const answered = sql`${update} returning ${this.expiredAside} as shown, ${this.more} as more`
      return [answered, ...writes].map((one) => one.compile(db))
    }
    if (this.unit === 'packet') return [this.packet(writes, result).compile(db)]
    const done = sql`done as (${update} returning k, ${this.expiredAside} as shown)`
    const rest = writes.map((one, n) => sql`part${sql.lit(n)} as (${one})`)
    return [sql`with ${sql.join([done, ...rest])} ${result}`.compile(db)]
  }

  /**
   * What is allowed is decided before anything is written, and not by what `row_count()` says afterwards: that lies
   * once the client has gone, and the server goes on to the end of the text all the same.
   */
  private packet(writes: Sql[], result: Sql): Sql {
    // The receipt is read by a statement of its own: that one sees what the former holder of the lock wrote.
    const allowed = sql`set @botmesh = (select ${this.allowed} from ${chats} where k = ${chat} for update)`
    const notYet = sql`set @botmesh = @botmesh = 1 and ${this.noReceipt}`
    const update = sql`update ${chats} set ${this.sets} where k = ${chat} and ${this.guard}`
    const all = [sql`start transaction`, allowed, notYet, update, ...writes, result, sql`commit`]
    return sql.join(all, sql`; `)
  }

  private get sets(): Sql {
    const { checkpoint, unwake, marker, inbound } = this.shape
    const sets = [sql`fence = ${slot('fence')}`, sql`writes = writes + 1`]
    if (checkpoint === 'write') {
      sets.push(
        sql`checkpoint = ${slot('checkpoint')}, revision = ${slot('revision')}, record_id = ${slot('record')}`,
        sql`checkpoint_until = ${this.now} + ${slot('ttlMs')}, wake_at = ${this.now} + ${slot('wakeMs')}`,
        sql`named_at = 0`,
      )
    } else if (checkpoint === 'clear') {
      sets.push(
        sql`checkpoint = null, checkpoint_until = null, record_id = null, wake_at = null`,
        sql`revision = ${TOMBSTONE}`,
      )
    }
    if (unwake) sets.push(sql`wake_at = null`)
    if (marker) sets.push(sql`marker = ${slot('marker')}, marker_until = ${this.now} + ${slot('markerMs')}`)
    if (inbound) sets.push(sql`committed = committed + 1`)
    return sql.join(sets)
  }

  /** What stands in the row allows it. */
  private get allowed(): Sql {
    const { checkpoint, expected, inbound, ids } = this.shape
    const rules = [sql`fence <= ${slot('fence')}`]
    if (checkpoint !== 'keep') {
      rules.push(
        expected
          ? sql`revision = ${slot('expected')}`
          : sql`(checkpoint is null or checkpoint_until <= ${this.now})`,
      )
    }
    if (inbound) rules.push(sql`committed < ${sql.lit(ids)}`)
    return sql.join(rules, sql` and `)
  }

  private get noReceipt(): Sql {
    return sql`not exists (select 1 from ${marks} where ${this.mark(slot('receipt'))})`
  }

  private update(): Sql {
    const rules = [sql`k = ${chat}`, this.allowed, this.noReceipt]
    // What it waited for has changed the row, and with it perhaps what this statement looked at before it waited.
    if (this.unit === 'statement') {
      rules.push(sql`writes = (select seen.writes from ${chats} as seen where seen.k = ${chat})`)
    }
    return sql`update ${chats} set ${this.sets} where ${sql.join(rules, sql` and `)}`
  }

  private mark(name: unknown): Sql {
    return sql`${sql.ref('chat')} = ${chat} and ${sql.ref('name')} = ${name}`
  }

  private others(): Sql[] {
    const { ack, outbox: sends, forget } = this.shape
    const parts = [this.noteMarks()]
    if (ack > 0) {
      parts.push(
        sql`update ${journal} set status = ${sql.lit(ACKNOWLEDGED)}, ended_at = ${this.now} where chat = ${chat} and id in (${this.acks}) and status = ${sql.lit(PENDING)} and ${this.guard}`,
      )
    }
    for (let n = 0; n < sends; n += 1) parts.push(this.send(n))
    if (forget > 0) {
      const names = sql.join(times(forget, (n) => sql`${slot(`forget${n}`)}`))
      parts.push(
        sql`delete from ${outbox} where chat = ${chat} and ${sql.ref('name')} in (${names}) and ${this.guard}`,
      )
    }
    return parts
  }

  private get acks(): Sql {
    return sql.join(times(this.shape.ack, (n) => sql`${slot(`ack${n}`)}`))
  }

  /** The receipt, and the inbound id. */
  private noteMarks(): Sql {
    const revision = sql`case when ${this.shown} is null then '' else concat(':', ${this.shown}) end`
    const more = sql`case when ${this.more} then '1' else '0' end`
    const rows = [
      sql`select k, ${slot('receipt')}, concat(${more}, ${revision}), ${this.now} + ${slot('receiptMs')} from ${this.source}`,
    ]
    if (this.shape.inbound) {
      rows.push(sql`select k, ${slot('inbound')}, '', ${this.now} + ${slot('dedupeMs')} from ${this.source}`)
    }
    const insert = sql`insert into ${marks} (${columns('chat', 'name', 'value', 'until')}) ${sql.join(rows, sql` union all `)}`
    const [value, until] = [sql.ref('value'), sql.ref('until')]
    return this.flavor.kind === 'mysql'
      ? sql`${insert} on duplicate key update ${value} = values(${value}), ${until} = values(${until})`
      : sql`${insert} on conflict (${columns('chat', 'name')}) do update set ${value} = excluded.${value}, ${until} = excluded.${until}`
  }

  private send(n: number): Sql {
    const names = ['chat', 'name', 'hash', 'content', 'status', 'sent', 'error'] as const
    const values = sql.join(names.map((name) => sql`${slot(`${name}${n}`)}`))
    const from = this.unit === 'packet' ? sql`from dual where ${this.guard}` : sql`where ${this.guard}`
    return sql`insert into ${outbox} (${columns(...names)}) select ${values} ${from} ${outboxUpsert(this.flavor)}`
  }

  /** The revision as the row has it after the first part; in `done` it stands ready. */
  private get shown(): Sql {
    return this.unit === 'statement' ? sql`shown` : this.expiredAside
  }

  private get expiredAside(): Sql {
    return sql`case when checkpoint is not null and checkpoint_until <= ${this.now} then null else revision end`
  }

  /** Whether unacknowledged records remain. */
  private get more(): Sql {
    const others = this.shape.ack > 0 ? sql` and left_over.id not in (${this.acks})` : sql``
    return sql`exists (select 1 from ${journal} as left_over where left_over.chat = ${chat} and left_over.status = ${sql.lit(PENDING)}${others})`
  }
}

/** In one statement with the removal, from what the row has at that moment. */
export const TOMBSTONE = sql<
  string | null
>`case when revision is null or revision like '-%' then revision else concat('-', revision) end`
