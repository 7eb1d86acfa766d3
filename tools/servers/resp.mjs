/** Asks a Redis server one command over a connection of its own: no client library, so that tools need none. */
import { connect } from 'node:net'

/** Longest wait for an answer; a paused server gives none. */
const TIMEOUT_MS = 1_000

/**
 * @param {number} port on this machine
 * @param {string[]} command
 * @param {{ auth?: string[] }} [options] user and password, or a password
 * @returns {Promise<unknown>} its reply: text, number, null or a list. Rejects with an error reply or after a second.
 */
export function ask(port, command, { auth = [] } = {}) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let data = Buffer.alloc(0)
    let skip = auth.length > 0 ? 1 : 0
    /** @param {() => void} settle */
    const end = (settle) => {
      socket.destroy()
      settle()
    }
    const fail = (/** @type {unknown} */ error) => end(() => reject(error))
    socket.setTimeout(TIMEOUT_MS, () => fail(new Error(`Port ${port} did not answer ${command[0]}.`)))
    socket.once('error', fail)
    socket.once('close', () => fail(new Error(`Port ${port} closed the connection.`)))
    socket.once('connect', () => {
      if (auth.length > 0) socket.write(encode(['AUTH', ...auth]))
      socket.write(encode(command))
    })
    socket.on('data', (/** @type {Buffer} */ more) => {
      data = Buffer.concat([data, more])
      for (let read = parse(data, 0); read !== undefined; read = parse(data, 0)) {
        const { value, next } = read
        data = data.subarray(next)
        if (value instanceof Error) return fail(value)
        if (skip === 0) return end(() => resolve(value))
        skip -= 1
      }
    })
  })
}

/** @param {string[]} parts */
function encode(parts) {
  return `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`
}

/**
 * @param {Buffer} data
 * @param {number} from
 * @returns {{ value: unknown, next: number } | undefined} undefined: not all of it is there yet
 */
function parse(data, from) {
  const end = data.indexOf('\r\n', from)
  if (end < 0) return undefined
  const [kind, text] = [data.toString('latin1', from, from + 1), data.toString('utf8', from + 1, end)]
  const next = end + 2
  if (kind === '+') return { value: text, next }
  if (kind === '-') return { value: new Error(text), next }
  if (kind === ':') return { value: Number(text), next }
  const length = Number(text)
  if (length < 0) return { value: null, next }
  if (kind === '$') {
    if (data.length < next + length + 2) return undefined
    return { value: data.toString('utf8', next, next + length), next: next + length + 2 }
  }
  const list = []
  let at = next
  for (let left = length; left > 0; left -= 1) {
    const one = parse(data, at)
    if (one === undefined) return undefined
    list.push(one.value)
    at = one.next
  }
  return { value: list, next: at }
}
