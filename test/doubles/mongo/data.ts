/**
 * What the double keeps: documents as BSON, so that nothing aliases, changed one at a time and each change as a whole.
 * Queries, expressions and updates are mingo's; the rules that it does not have (unique `_id`, the limit of 16 MB, no
 * `$expr` in an upsert) are here.
 */
import { BSON, type Document } from 'bson'
import { Aggregator, Query, update as applyOperators } from 'mingo'

/** An error as the server words it. */
export class CommandError extends Error {
  constructor(
    readonly code: number,
    readonly codeName: string,
    message: string,
    /** More for the reply. */
    readonly more: Document = {},
  ) {
    super(message)
  }
}

const LARGEST_BYTES = 16 * 1024 * 1024

export interface Change {
  filter: Document
  /** Operators, or a pipeline. */
  update: Document | Document[]
  upsert: boolean
}

export interface Changed {
  before: Document | null
  after: Document | null
  upserted: boolean
}

export class Documents {
  private readonly byId = new Map<string, Uint8Array>()

  constructor(readonly name: string) {}

  find(filter: Document): Document[] {
    const query = new Query(filter)
    return this.candidates(filter).filter((document) => query.test(document))
  }

  /** By their ids where the filter names them. */
  private candidates({ _id: id }: Document): Document[] {
    const named: unknown[] | undefined = isOperator(id) ? id['$in'] : id === undefined ? undefined : [id]
    const stored = named ? named.flatMap((one) => this.byId.get(keyOf(one)) ?? []) : [...this.byId.values()]
    return stored.map((bytes) => BSON.deserialize(bytes))
  }

  insert(document: Document): void {
    const key = keyOf(document['_id'])
    if (this.byId.has(key)) {
      const message = `E11000 duplicate key error collection: ${this.name} index: _id_ dup key: { _id: ${key} }`
      throw new CommandError(11000, 'DuplicateKey', message, {
        keyPattern: { _id: 1 },
        keyValue: { _id: document['_id'] },
      })
    }
    this.byId.set(key, encoded(document))
  }

  changeOne({ filter, update, upsert }: Change): Changed {
    if (upsert && JSON.stringify(filter).includes('"$expr"')) {
      throw new CommandError(
        224,
        'QueryFeatureNotAllowed',
        '$expr is not allowed in the query predicate for an upsert',
      )
    }
    const [before] = this.find(filter)
    if (before) {
      const after = changed(before, update)
      this.byId.set(keyOf(before['_id']), encoded(after))
      return { before, after, upserted: false }
    }
    if (!upsert) return { before: null, after: null, upserted: false }
    const after = changed(seedOf(filter), update)
    after['_id'] ??= new BSON.ObjectId()
    this.insert(after)
    return { before: null, after, upserted: true }
  }

  delete(document: Document): void {
    this.byId.delete(keyOf(document['_id']))
  }
}

/**
 * A projection that names what to keep; mingo's own would take values for expressions. `a.b` of a list: of each member.
 */
export function project(document: Document, projection: Document): Document {
  if (Object.keys(projection).length === 0) return document
  const kept: Document = { _id: document['_id'] }
  for (const [path, how] of Object.entries(projection)) {
    const [field = '', inner] = path.split('.')
    const value: unknown = document[field]
    if (value === undefined) continue
    if (inner !== undefined) {
      kept[field] = (value as Document[]).map((member) => ({ [inner]: member[inner] }))
    } else if (how === 1) kept[field] = value
    else if (isOperator(how) && '$slice' in how) kept[field] = (value as unknown[]).slice(0, how['$slice'])
    else if (isOperator(how) && '$elemMatch' in how) {
      const query = new Query(how['$elemMatch'])
      const first = (value as Document[]).find((member) => query.test(member))
      if (first) kept[field] = [first]
    } else throw new CommandError(2, 'BadValue', `The double does not project ${JSON.stringify(how)}.`)
  }
  return kept
}

function changed(document: Document, update: Document | Document[]): Document {
  if (Array.isArray(update)) {
    const [result] = new Aggregator(update).run<Document>([document])
    return result ?? document
  }
  const copy = structuredClone(document)
  applyOperators(copy, update)
  return copy
}

/** What an upsert begins with: the fields that the filter requires to be equal to something. */
function seedOf(filter: Document): Document {
  return Object.fromEntries(
    Object.entries(filter).filter(([field, value]) => !field.startsWith('$') && !isOperator(value)),
  )
}

function encoded(document: Document): Uint8Array {
  if (BSON.calculateObjectSize(document) <= LARGEST_BYTES) return BSON.serialize(document)
  throw new CommandError(
    17419,
    'Location17419',
    `Resulting document after update is larger than ${LARGEST_BYTES}`,
  )
}

function isOperator(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && Object.keys(value).some((key) => key.startsWith('$'))
}

function keyOf(id: unknown): string {
  return JSON.stringify(id)
}
