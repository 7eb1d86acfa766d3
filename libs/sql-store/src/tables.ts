/**
 * The tables, as Kysely is told of them, and the prefix that their names get. Names (chats, ids, revisions, users) are
 * escaped (`names.ts`); values are JSON text; times are milliseconds by the database's clock. Drivers may return
 * 64-bit integers as text: readers convert.
 */
import {
  OperationNodeTransformer,
  type ColumnType,
  type IdentifierNode,
  type KyselyPlugin,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  type QueryResult,
  type RootOperationNode,
  type SchemableIdentifierNode,
  type Selectable,
  type UnknownRow,
} from 'kysely'

/** 64 bits; drivers may return them as text. */
export type Int = number | string
type Counted = ColumnType<Int, Int | undefined, Int>

/** A row a chat: what its turns read and write under a row lock. */
export interface ChatsTable {
  k: string
  /** Highest fence that has read or written this chat (I5). */
  fence: Counted
  /** Of the checkpoint, or of the tombstone that its removal left (`-<revision>`); null if there never was one. */
  revision: string | null
  checkpoint: string | null
  /** When it expires; null: never. */
  checkpoint_until: Int | null
  /** The record that a kept answer points to (H7): it is not cleaned up. */
  record_id: string | null
  /** The checkpoint's appointment (`Effects.wakeInMs`), and when a sweeper last named it. */
  wake_at: Int | null
  named_at: Counted
  marker: string | null
  marker_until: Int | null
  last_id: string | null
  last_at: Int | null
  /** Committed ids noted since they were last counted. */
  committed: Counted
  /** Changes with every write, so that "rows changed" and "rows found" are one number. */
  writes: Counted
}

/** Committed inbound ids (`i:<id>`) and receipts of commits (`c:<commit>`), each until its time has passed. */
export interface MarksTable {
  chat: string
  name: string
  value: string | null
  until: Int
}

export const PENDING = 0
export const ACKNOWLEDGED = 1
export const DEAD = 2

export interface JournalTable {
  seq: Counted
  chat: string
  id: string
  message: string
  attempts: Counted
  /** JSON text. */
  last_error: string | null
  status: Counted
  due_at: Int
  /** When a sweeper last named it: the next one is told of others first. */
  named_at: Counted
  ended_at: Counted
}

export interface OutboxTable {
  chat: string
  name: string
  hash: string
  content: string
  status: string
  sent: string | null
  error: string | null
}

export interface UsersTable {
  id: string
  data: string
  revision: string
}

export interface LocksTable {
  name: string
  token: string
  fence: Int
  until: Int
}

export interface ChannelsTable {
  name: string
  last: Int
  /** Entries up to this one are of before the channel last expired. */
  gone: Counted
  /** When it expires; 0: it has, and its entries are removed. */
  until: Int
}

export interface LogTable {
  channel: string
  id: Int
  payload: string
}

/** What could not be read and was moved out of the way. */
export interface DamagedTable {
  id: Counted
  what: string
  name: string
  value: string | null
  at: Int
}

/** One row a migration that has run. */
export interface MigrationsTable {
  version: Int
  at: Int
}

export interface Tables {
  chats: ChatsTable
  marks: MarksTable
  journal: JournalTable
  outbox: OutboxTable
  users: UsersTable
  locks: LocksTable
  channels: ChannelsTable
  log: LogTable
  damaged: DamagedTable
  migrations: MigrationsTable
}

export type ChatColumns = Selectable<ChatsTable>
export type JournalColumns = Selectable<JournalTable>

export const TABLE_NAMES = [
  'chats',
  'marks',
  'journal',
  'outbox',
  'users',
  'locks',
  'channels',
  'log',
  'damaged',
  'migrations',
] as const satisfies readonly (keyof Tables)[]

/** No table's own name has an underscore, so that no two prefixes share a table (C4). */
export function tableName(prefix: string, table: keyof Tables): string {
  return `${prefix}_${table}`
}

class PrefixTransformer extends OperationNodeTransformer {
  private readonly known: ReadonlySet<string> = new Set(TABLE_NAMES)

  constructor(private readonly prefix: string) {
    super()
  }

  protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
    const { name } = node.identifier
    if (node.schema !== undefined || !this.known.has(name)) return node
    const identifier: IdentifierNode = { ...node.identifier, name: `${this.prefix}_${name}` }
    return { ...node, identifier }
  }
}

/** Gives every table of ours the prefix, wherever a query names it. */
export class PrefixPlugin implements KyselyPlugin {
  private readonly transformer: PrefixTransformer

  constructor(prefix: string) {
    this.transformer = new PrefixTransformer(prefix)
  }

  transformQuery({ node, queryId }: PluginTransformQueryArgs): RootOperationNode {
    return this.transformer.transformNode(node, queryId)
  }

  transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    return Promise.resolve(result)
  }
}
