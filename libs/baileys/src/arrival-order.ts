/**
 * Lets Baileys work on one message stanza at a time, in the order of the connection (T2).
 *
 * Left alone it begins on each at once, and looks up who the writer is before it waits for those before: for the first
 * message of a person that takes longest, and what the person wrote next overtakes it. What came while nothing was
 * connected has a queue of its own there, which live messages overtake.
 */
import type { BinaryNode, WASocket } from '@whiskeysockets/baileys'

type Listener = (stanza: BinaryNode) => unknown
type Events = Pick<WASocket['ws'], 'isOpen' | 'listeners' | 'off' | 'on'>

const MESSAGE = 'CB:message'

/**
 * To be called once for each socket, when Baileys listens to it and before anyone else does.
 * @param arrived told of each stanza at once, before its turn.
 */
export function keepArrivalOrder(ws: Events, arrived: (stanza: BinaryNode) => void): void {
  const listeners = ws.listeners(MESSAGE) as Listener[]
  for (const listener of listeners) ws.off(MESSAGE, listener)
  let last: Promise<unknown> = Promise.resolve()
  ws.on(MESSAGE, (stanza: BinaryNode) => {
    arrived(stanza)
    const message = asLive(stanza)
    last = last.then(() => {
      // What a closed connection has left is delivered again over the next one.
      if (!ws.isOpen) return
      // Baileys reports its own failures; the next message must come to its turn after any.
      return Promise.allSettled(listeners.map(async (listener) => listener(message)))
    })
  })
}

/** Of a message that waited Baileys does not say when it is done with it; to a bot there is no other difference. */
function asLive(stanza: BinaryNode): BinaryNode {
  const { offline: _, ...attrs } = stanza.attrs
  return { ...stanza, attrs }
}
