/**
 * Versioned migrations: each runs once, under a lock, whatever the number of replicas that start together. Where the
 * tables are up to date nothing is written, so that a bot may run without the right to create tables.
 *
 * To add one: append it to MIGRATIONS and never change those before it. Each must be safe to repeat, since MySQL
 * commits around every `create table` and a replica may die in between.
 */
import { sql, type Kysely } from 'kysely'
import { ConfigError } from '@botmesh/core'
import type { SqlFlavor } from './flavor.js'
import { tableName, type Tables } from './tables.js'

type Columns = Record<string, keyof SqlFlavor['types']>

interface TableForm {
  columns: Columns
  /** SQL after the type: `not null` unless given. */
  rules?: Record<string, string>
  primary?: string[]
  unique?: string[]
  indexes?: Record<string, string[]>
}

const FIRST: Partial<Record<keyof Tables, TableForm>> = {
  chats: {
    columns: {
      k: 'name',
      fence: 'integer',
      revision: 'name',
      checkpoint: 'text',
      checkpoint_until: 'integer',
      record_id: 'name',
      wake_at: 'integer',
      named_at: 'integer',
      marker: 'text',
      marker_until: 'integer',
      last_id: 'name',
      last_at: 'integer',
      committed: 'integer',
      writes: 'integer',
    },
    rules: {
      fence: 'not null default 0',
      revision: 'null',
      checkpoint: 'null',
      checkpoint_until: 'null',
      record_id: 'null',
      wake_at: 'null',
      named_at: 'not null default 0',
      marker: 'null',
      marker_until: 'null',
      last_id: 'null',
      last_at: 'null',
      committed: 'not null default 0',
      writes: 'not null default 0',
    },
    primary: ['k'],
    indexes: { wake: ['wake_at'] },
  },
  marks: {
    columns: { chat: 'name', name: 'name', value: 'text', until: 'integer' },
    rules: { value: 'null' },
    primary: ['chat', 'name'],
    indexes: { until: ['until'] },
  },
  journal: {
    columns: {
      seq: 'serial',
      chat: 'name',
      id: 'name',
      message: 'text',
      attempts: 'integer',
      last_error: 'text',
      status: 'integer',
      due_at: 'integer',
      named_at: 'integer',
      ended_at: 'integer',
    },
    rules: {
      seq: '',
      attempts: 'not null default 0',
      last_error: 'null',
      status: 'not null default 0',
      named_at: 'not null default 0',
      ended_at: 'not null default 0',
    },
    unique: ['chat', 'id'],
    indexes: {
      oldest: ['chat', 'status', 'seq'],
      named: ['status', 'named_at'],
      ended: ['status', 'ended_at'],
    },
  },
  outbox: {
    columns: {
      chat: 'name',
      name: 'name',
      hash: 'name',
      content: 'text',
      status: 'name',
      sent: 'text',
      error: 'text',
    },
    rules: { sent: 'null', error: 'null' },
    primary: ['chat', 'name'],
  },
  users: { columns: { id: 'name', data: 'text', revision: 'name' }, primary: ['id'] },
  locks: {
    columns: { name: 'name', token: 'name', fence: 'integer', until: 'integer' },
    primary: ['name'],
    indexes: { until: ['until'] },
  },
  channels: {
    columns: { name: 'name', last: 'integer', gone: 'integer', until: 'integer' },
    rules: { gone: 'not null default 0' },
    primary: ['name'],
    indexes: { until: ['until'] },
  },
  log: { columns: { channel: 'name', id: 'integer', payload: 'text' }, primary: ['channel', 'id'] },
  damaged: {
    columns: { id: 'serial', what: 'name', name: 'text', value: 'text', at: 'integer' },
    rules: { id: '', value: 'null' },
  },
}

const MIGRATIONS: ReadonlyArray<Partial<Record<keyof Tables, TableForm>>> = [FIRST]

/** The schema that this release reads and writes. */
export const SCHEMA_VERSION = MIGRATIONS.length

const REGISTER: TableForm = { columns: { version: 'integer', at: 'integer' }, primary: ['version'] }

/**
 * Brings the tables to `SCHEMA_VERSION`.
 * @throws ConfigError if they are of a newer release.
 */
export async function migrate(db: Kysely<Tables>, flavor: SqlFlavor, prefix: string): Promise<void> {
  const before = await versionOf(db, flavor, prefix)
  refuseNewer(before, flavor, prefix)
  if (before === SCHEMA_VERSION) return
  await flavor.exclusively(db, tableName(prefix, 'migrations'), async (locked) => {
    const now = await versionOf(locked, flavor, prefix)
    refuseNewer(now, flavor, prefix)
    if (now === 0) await createTable(locked, flavor, prefix, 'migrations', REGISTER)
    for (const [index, tables] of MIGRATIONS.entries()) {
      const version = index + 1
      if (version <= now) continue
      for (const [table, form] of Object.entries(tables)) {
        await createTable(locked, flavor, prefix, table as keyof Tables, form)
      }
      await locked.insertInto('migrations').values({ version, at: flavor.nowMs }).execute()
    }
  })
}

async function versionOf(db: Kysely<Tables>, flavor: SqlFlavor, prefix: string): Promise<number> {
  if (!(await flavor.tableExists(db, tableName(prefix, 'migrations')))) return 0
  const row = await db
    .selectFrom('migrations')
    .select(({ fn }) => fn.max('version').as('version'))
    .executeTakeFirst()
  return Number(row?.version ?? 0)
}

function refuseNewer(version: number, flavor: SqlFlavor, prefix: string): void {
  if (version <= SCHEMA_VERSION) return
  throw new ConfigError(
    `The tables "${prefix}_*" in ${flavor.title} (${flavor.place}) are of schema version ${version}; this release of Botmesh knows versions up to ${SCHEMA_VERSION}. Update it on this replica, or use another "prefix".`,
    { option: 'prefix', value: prefix, accepted: `tables of a version up to ${SCHEMA_VERSION}` },
  )
}

async function createTable(
  db: Kysely<Tables>,
  flavor: SqlFlavor,
  prefix: string,
  table: keyof Tables,
  form: TableForm,
): Promise<void> {
  const { columns, rules = {}, primary, unique, indexes = {} } = form
  const name = tableName(prefix, table)
  const list = (names: string[]) => sql.join(names.map((one) => sql.id(one)))
  const lines = Object.entries(columns).map(
    ([column, type]) =>
      sql`${sql.id(column)} ${sql.raw(flavor.types[type])} ${sql.raw(rules[column] ?? 'not null')}`,
  )
  if (primary) lines.push(sql`primary key (${list(primary)})`)
  if (unique) lines.push(sql`unique (${list(unique)})`)
  const inline = flavor.kind === 'mysql'
  if (inline) {
    for (const [index, of] of Object.entries(indexes)) lines.push(sql`index ${sql.id(index)} (${list(of)})`)
  }
  await sql`create table if not exists ${sql.id(name)} (${sql.join(lines)}) ${sql.raw(flavor.tableSuffix)}`.execute(
    db,
  )
  if (inline) return
  for (const [index, of] of Object.entries(indexes)) {
    const indexName = sql.id(`${name}_${index}`)
    await sql`create index if not exists ${indexName} on ${sql.id(name)} (${list(of)})`.execute(db)
  }
}
