/** The commands that the double answers, over its documents. */
import { Long, type Document } from 'bson'
import { Aggregator, Query } from 'mingo'
import { CommandError, Documents, project } from './data.js'

const FIRST_BATCH = 101

interface OpenCursor {
  namespace: string
  rest: Document[]
}

export class Commands {
  private readonly collections = new Map<string, Documents>()
  private readonly indexes = new Map<string, Document[]>()
  private readonly cursors = new Map<string, OpenCursor>()
  private lastCursor = 0

  /** Names of the commands there are. */
  readonly known = {
    find: (command: Document) => this.find(command),
    aggregate: (command: Document) => this.aggregate(command),
    getMore: (command: Document) => this.getMore(command),
    killCursors: () => ({}),
    insert: (command: Document) => this.insert(command),
    update: (command: Document) => this.update(command),
    delete: (command: Document) => this.remove(command),
    findAndModify: (command: Document) => this.findAndModify(command),
    createIndexes: (command: Document) => this.createIndexes(command),
    listIndexes: (command: Document) => this.listIndexes(command),
  }

  documents(namespace: string): Documents {
    const known = this.collections.get(namespace)
    if (known) return known
    const made = new Documents(namespace)
    this.collections.set(namespace, made)
    return made
  }

  private of(command: Document, name: string): Documents {
    return this.documents(`${command['$db']}.${command[name]}`)
  }

  private find(command: Document): Document {
    const { filter = {}, projection = {}, sort, limit = 0, batchSize } = command
    const collection = this.of(command, 'find')
    const matching = collection.find(filter)
    let cursor = new Query({}).find<Document>(matching)
    if (sort) cursor = cursor.sort(sort)
    if (limit > 0) cursor = cursor.limit(limit)
    const projected = cursor.all().map((document) => project(document, projection))
    return this.batch(collection.name, projected, batchSize)
  }

  private aggregate(command: Document): Document {
    const { pipeline = [], cursor = {} } = command
    const collection = this.of(command, 'aggregate')
    const [first, ...rest] = pipeline as Document[]
    const match = first?.['$match'] as Document | undefined
    const found = collection.find(match ?? {})
    const stages = match ? rest : (pipeline as Document[])
    return this.batch(collection.name, new Aggregator(stages).run<Document>(found), cursor.batchSize)
  }

  private batch(namespace: string, documents: Document[], batchSize: number = FIRST_BATCH): Document {
    const firstBatch = documents.slice(0, batchSize)
    const rest = documents.slice(batchSize)
    if (rest.length === 0) return { cursor: { firstBatch, id: Long.ZERO, ns: namespace } }
    const id = Long.fromNumber((this.lastCursor += 1))
    this.cursors.set(id.toString(), { namespace, rest })
    return { cursor: { firstBatch, id, ns: namespace } }
  }

  private getMore({ getMore, batchSize = Infinity }: Document): Document {
    const key = String(getMore)
    const open = this.cursors.get(key)
    if (!open) throw new CommandError(43, 'CursorNotFound', `cursor id ${key} not found`)
    const nextBatch = open.rest.splice(0, batchSize)
    const over = open.rest.length === 0
    if (over) this.cursors.delete(key)
    const id = over ? Long.ZERO : Long.fromNumber(Number(key))
    return { cursor: { nextBatch, id, ns: open.namespace } }
  }

  private insert(command: Document): Document {
    const collection = this.of(command, 'insert')
    return each(command['documents'], (document) => {
      collection.insert(document)
      return 1
    })
  }

  private update(command: Document): Document {
    const collection = this.of(command, 'update')
    const upserted: Document[] = []
    const reply = each(command['updates'], ({ q, u, upsert = false, multi = false }, index) => {
      if (multi) {
        const all = collection.find(q)
        for (const { _id } of all) collection.changeOne({ filter: { _id }, update: u, upsert: false })
        return all.length
      }
      const changed = collection.changeOne({ filter: q, update: u, upsert })
      if (changed.upserted) upserted.push({ index, _id: changed.after?.['_id'] })
      return changed.after ? 1 : 0
    })
    return { ...reply, nModified: reply['n'], ...(upserted.length > 0 ? { upserted } : {}) }
  }

  private remove(command: Document): Document {
    const collection = this.of(command, 'delete')
    return each(command['deletes'], ({ q, limit }) => {
      const found = collection.find(q).slice(0, limit === 1 ? 1 : Infinity)
      for (const document of found) collection.delete(document)
      return found.length
    })
  }

  private findAndModify(command: Document): Document {
    const { query = {}, update, upsert = false, new: after = false, fields = {} } = command
    const collection = this.of(command, 'findAndModify')
    const changed = collection.changeOne({ filter: query, update, upsert })
    const document = after ? changed.after : changed.before
    const value = document ? project(document, fields) : null
    const lastErrorObject = { n: changed.after ? 1 : 0, updatedExisting: changed.before !== null }
    return { lastErrorObject, value }
  }

  private createIndexes(command: Document): Document {
    const { name } = this.of(command, 'createIndexes')
    const known = this.indexes.get(name) ?? [{ v: 2, key: { _id: 1 }, name: '_id_' }]
    const asked = command['indexes'] as Document[]
    const fresh = asked.filter((one) => !known.some((other) => other['name'] === one['name']))
    this.indexes.set(name, [...known, ...fresh])
    return { numIndexesBefore: known.length, numIndexesAfter: known.length + fresh.length }
  }

  private listIndexes(command: Document): Document {
    const { name } = this.of(command, 'listIndexes')
    return this.batch(name, this.indexes.get(name) ?? [])
  }
}

/** Runs the members of a command in order, up to the first that fails. */
function each(members: Document[], run: (member: Document, index: number) => number): Document {
  let n = 0
  for (const [index, member] of members.entries()) {
    try {
      n += run(member, index)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      const { code, message, more } = error
      return { n, writeErrors: [{ index, code, errmsg: message, ...more }] }
    }
  }
  return { n }
}
