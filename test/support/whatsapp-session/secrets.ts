/** Whether anything of a WhatsApp session's keys, or of a password, was said: in a log, an error, an event, a console. */
import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { BufferJSON } from '@whiskeysockets/baileys'
import type { SessionRecords, SessionStorage } from '@botmesh/baileys'

/** What shorter texts have in common with ordinary ones by chance. */
const SHORTEST_BYTES = 16
/** How much of a key in a row counts as the key. */
const TELLING_BYTES = 6
/** And how much of a password, as it is. */
const TELLING_LETTERS = 8

export class SessionSecrets {
  /** Whatever is a key, or looks like one → where it was found. */
  private readonly keys = new Map<string, string>()
  /** Of those that are texts: so many letters of one in a row tell it. */
  private readonly passwords = new Map<string, string>()

  get size(): number {
    return this.keys.size
  }

  /** @param text of a record of the session; what is damaged is taken as it is. */
  learn(name: string, text: string): void {
    let value: unknown
    try {
      value = JSON.parse(text, BufferJSON.reviver)
    } catch {
      return
    }
    this.walk(name, value)
  }

  /** @param password random, so that no part of it is said by chance. */
  learnPassword(name: string, password: string): void {
    this.passwords.set(password, name)
    this.keys.set(Buffer.from(password).toString('base64'), name)
    // As it is compared, and as it is asked for: one could log in with that.
    for (const user of ['', 'x']) {
      this.keys.set(Buffer.from(`${user}:${password}`).toString('base64'), `${name}.header`)
    }
    this.keys.set(createHash('sha256').update(password).digest('base64'), `${name}.hash`)
  }

  /** Learns every text that is written through it. */
  watching(inner: SessionStorage): SessionStorage {
    return {
      open: async (session, fence) => {
        const records = await inner.open(session, fence)
        const watched: SessionRecords = {
          ...(records.damaged === undefined ? {} : { damaged: records.damaged }),
          read: async (names) => {
            const found = await records.read(names)
            for (const [name, text] of found) this.learn(name, text)
            return found
          },
          write: (changes) => {
            for (const [name, text] of changes) if (text !== null) this.learn(name, text)
            return records.write(changes)
          },
          retire: () => records.retire(),
          close: () => records.close(),
        }
        return watched
      },
    }
  }

  /** @returns where the keys come from that `said` has some of, in base64, hex or as numbers. */
  foundIn(said: unknown): string[] {
    const texts = wordings(said)
    const found = new Set<string>()
    for (const [key, from] of this.keys) {
      const bytes = Buffer.from(key, 'base64')
      if (pieces(bytes).some((piece) => texts.some((text) => text.includes(piece)))) found.add(from)
    }
    for (const [password, from] of this.passwords) {
      if (runs(password).some((part) => texts.some((text) => text.includes(part)))) found.add(from)
    }
    return [...found]
  }

  private walk(from: string, value: unknown): void {
    if (value instanceof Uint8Array) {
      if (value.byteLength >= SHORTEST_BYTES) this.keys.set(Buffer.from(value).toString('base64'), from)
      return
    }
    // Signal's sessions, and the secret of the pairing, are base64 already.
    if (typeof value === 'string' && /^[A-Za-z0-9+/]{22,}={0,2}$/.test(value)) {
      this.keys.set(Buffer.from(value, 'base64').toString('base64'), from)
    }
    if (typeof value !== 'object' || value === null) return
    for (const [name, part] of Object.entries(value)) {
      this.walk(`${from}.${name}`, part)
      // Signal's sessions are named by a key.
      this.walk(`${from}.<name>`, name)
    }
  }
}

function runs(password: string): string[] {
  const count = Math.max(1, password.length - TELLING_LETTERS + 1)
  return Array.from({ length: count }, (_, at) => password.slice(at, at + TELLING_LETTERS))
}

/** Stretches of a key, in every way that it may be written down. */
function pieces(bytes: Buffer): string[] {
  const all: string[] = []
  // A stretch that begins at a multiple of three is the same in the base64 of the whole.
  for (let at = 0; at + TELLING_BYTES * 2 <= bytes.length; at += TELLING_BYTES) {
    const part = bytes.subarray(at, at + TELLING_BYTES)
    all.push(part.toString('base64'), part.toString('base64url'), part.toString('hex'), [...part].join(','))
  }
  return all
}

/** As JSON, as the console prints it, and both without what stands between numbers. */
function wordings(said: unknown): string[] {
  const json = JSON.stringify(said, (_, value: unknown) =>
    value instanceof Error
      ? { ...(value as object), message: value.message, stack: value.stack, cause: value.cause }
      : value,
  )
  const printed = inspect(said, { depth: Infinity, maxArrayLength: null, maxStringLength: null })
  return [json, printed].flatMap((text) => {
    const dense = text.replaceAll(/\s+/g, '')
    return [text, dense, dense.toLowerCase(), dense.replaceAll(/"\d+":/g, '')]
  })
}
