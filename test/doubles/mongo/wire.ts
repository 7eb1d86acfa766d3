/** MongoDB's wire protocol as a driver speaks it: OP_MSG, and OP_QUERY for the first greeting. */
import { BSON, type Document } from 'bson'

const HEADER_BYTES = 16
const OP_REPLY = 1
const OP_QUERY = 2004
const OP_MSG = 2013

/** A command that arrived. */
export interface Request {
  id: number
  /** What it came as, and is answered as. */
  form: 'msg' | 'query'
  command: Document
}

/** Cuts a stream into requests. */
export class Framing {
  private rest = Buffer.alloc(0)

  push(data: Buffer): Request[] {
    this.rest = Buffer.concat([this.rest, data])
    const requests: Request[] = []
    while (this.rest.length >= HEADER_BYTES) {
      const length = this.rest.readInt32LE(0)
      if (this.rest.length < length) break
      requests.push(parse(this.rest.subarray(0, length)))
      this.rest = this.rest.subarray(length)
    }
    return requests
  }
}

function parse(message: Buffer): Request {
  const id = message.readInt32LE(4)
  const code = message.readInt32LE(12)
  if (code === OP_QUERY) {
    // Flags, the collection's name, skip and limit, the query.
    const name = message.indexOf(0, HEADER_BYTES + 4)
    return { id, form: 'query', command: BSON.deserialize(message.subarray(name + 1 + 8)) }
  }
  if (code !== OP_MSG) throw new Error(`The double does not understand messages of code ${code}.`)
  return { id, form: 'msg', command: parseSections(message) }
}

function parseSections(message: Buffer): Document {
  const command: Document = {}
  let at = HEADER_BYTES + 4
  while (at < message.length) {
    const kind = message[at]
    at += 1
    const size = message.readInt32LE(at)
    const section = message.subarray(at, at + size)
    if (kind === 0) Object.assign(command, BSON.deserialize(section))
    else Object.assign(command, parseSequence(section))
    at += size
  }
  return command
}

/** Documents that travel beside the command, under the name of its field. */
function parseSequence(section: Buffer): Document {
  const end = section.indexOf(0, 4)
  const documents: Document[] = []
  for (let at = end + 1; at < section.length;) {
    const size = section.readInt32LE(at)
    documents.push(BSON.deserialize(section.subarray(at, at + size)))
    at += size
  }
  return { [section.toString('utf8', 4, end)]: documents }
}

let replies = 0

export function encodeReply({ id, form }: Request, reply: Document): Buffer {
  const body = BSON.serialize(reply)
  // Of a message: flags and the kind of the only section. Of a reply: flags, cursor, position, one document.
  const before = Buffer.alloc(form === 'msg' ? 5 : 20)
  if (form === 'query') before.writeInt32LE(1, 16)
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeInt32LE(HEADER_BYTES + before.length + body.length, 0)
  header.writeInt32LE(++replies, 4)
  header.writeInt32LE(id, 8)
  header.writeInt32LE(form === 'msg' ? OP_MSG : OP_REPLY, 12)
  return Buffer.concat([header, before, body])
}
