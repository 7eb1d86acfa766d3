/** Asks a server one question over TCP. */
import { connect } from 'node:net'

/**
 * @param {number} port on this machine
 * @param {string | Buffer | undefined} question nothing: the server speaks first
 * @param {(answer: Buffer) => boolean} isRight
 * @returns {Promise<boolean>} false also if nothing answers within a second
 */
export function askOnce(port, question, isRight) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    /** @param {boolean} answer */
    const end = (answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1_000, () => end(false))
    socket.once('error', () => end(false))
    socket.once('end', () => end(false))
    socket.once('connect', () => {
      if (question !== undefined) socket.write(question)
    })
    socket.once('data', (data) => end(isRight(data)))
  })
}
