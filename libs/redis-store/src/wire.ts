/**
 * A script call written for the socket in one go. ioredis encodes each argument by itself, which is the larger part of
 * what a call with hundreds of them costs; almost all of ours are ASCII, and then a text's length is its size.
 */
import { Command } from 'ioredis'

/** '\r\n$<length>\r\n' for the lengths that occur. */
const HEADERS = Array.from({ length: 1024 }, (_, length) => `\r\n$${length}\r\n`)

class WireCommand extends Command {
  constructor(
    name: string,
    private readonly wire: Buffer,
  ) {
    super(name, [], { replyEncoding: 'utf8' })
  }

  override toWritable(): Buffer {
    return this.wire
  }
}

/** @param args everything after the command's name. @param lead an argument before them: a script, or its name. */
export function wireCommand(name: string, args: readonly string[], lead?: string): Command {
  let text = `*${args.length + (lead === undefined ? 1 : 2)}\r\n$${name.length}\r\n${name}`
  if (lead !== undefined) text += header(lead) + lead
  for (const arg of args) text += header(arg) + arg
  text += '\r\n'
  if (Buffer.byteLength(text) === text.length) return new WireCommand(name, Buffer.from(text, 'latin1'))
  return new Command(name, lead === undefined ? [...args] : [lead, ...args], { replyEncoding: 'utf8' })
}

function header({ length }: string): string {
  return HEADERS[length] ?? `\r\n$${length}\r\n`
}
