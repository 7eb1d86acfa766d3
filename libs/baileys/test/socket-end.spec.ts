/** P3: nothing of a closed connection keeps the process. */
import { expect, it } from '@jest/globals'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { initAuthCreds, makeWASocket } from '@whiskeysockets/baileys'
import { closeSocket, dropQuestions } from '../src/socket-end.js'
import { silentLogger, systemClock } from '@botmesh/core'

it('P3: a question that was asked before the end is answered by it, and one that is asked after it, too', async () => {
  // Accepts the connection and says nothing.
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const keys = { get: async () => ({}), set: async () => {} }
  const socket = makeWASocket({
    waWebSocketUrl: `ws://127.0.0.1:${port}`,
    auth: { creds: initAuthCreds(), keys },
  })
  const before = socket.waitForMessage('before', 60_000)
  const ended = expect(before).rejects.toThrow()
  await closeSocket(socket, { clock: systemClock, logger: silentLogger }, 'whatsapp')
  await ended
  await expect(socket.waitForMessage('after', 60_000)).rejects.toThrow('the connection is closed')
  dropQuestions(socket)
  await expect(socket.query({ tag: 'iq', attrs: {} }, 60_000)).rejects.toThrow()
  server.close()
})
