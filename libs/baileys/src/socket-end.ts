/** The end of a socket of Baileys', which by itself may take half a minute. */
import type { WASocket } from '@whiskeysockets/baileys'
import type { Clock, ProviderSink } from '@botmesh/core'

/** How long the other side may take to agree. */
const CLOSE_GRACE_MS = 2000

export function closeGrace(clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, CLOSE_GRACE_MS, { background: true })
  })
}

/** Asks the socket to close and, if the other side does not answer, cuts it. Never rejects. */
export async function closeSocket(
  socket: WASocket,
  { clock, logger }: Pick<ProviderSink, 'clock' | 'logger'>,
  provider: string,
): Promise<void> {
  const wire = socket.ws as unknown as { socket?: { terminate(): void } | null }
  const grace = clock.setTimeout(() => wire.socket?.terminate(), CLOSE_GRACE_MS)
  try {
    await socket.end(undefined)
  } catch (error) {
    logger.debug({ err: error, provider }, 'whatsapp: closing the socket failed')
  } finally {
    grace.cancel()
    // Baileys does not wait for a connection that the other side is closing: it would keep the process for half a minute.
    wire.socket?.terminate()
    dropQuestions(socket)
  }
}

interface Wire {
  emit(name: 'error', error: Error): void
  on(name: 'newListener', added: (name: string, listener: (error: Error) => void) => void): void
}

const closed = new WeakSet<object>()

/**
 * Questions of a closed socket, which nobody will answer: Baileys would wait for their time-outs, up to a minute. Also those
 * that are asked later: whatever was under way goes on to its next one. Idempotent.
 */
export function dropQuestions(socket: Pick<WASocket, 'ws'>): void {
  const wire = socket.ws as unknown as Wire
  if (closed.has(wire)) return
  closed.add(wire)
  const gone = (): Error => new Error('the connection is closed')
  // Who asks listens for the answer and for the end of the connection, which is called an error.
  wire.on('newListener', (name, listener) => {
    if (name === 'error') queueMicrotask(() => listener(gone()))
  })
  wire.emit('error', gone())
}
