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

export interface ArrivalWatch {
  /** Baileys acknowledges and drops it: it is handed over at once, without a turn, and nothing is told of it. */
  isIgnored(stanza: BinaryNode): boolean
  /** Told of each stanza at once, before its turn. */
  arrived(stanza: BinaryNode): void
  /** Baileys is done with it, whatever came of it; always told in the end. */
  done(stanza: BinaryNode): void
}

/** To be called once for each socket, when Baileys listens to it and before anyone else does. */
export function keepArrivalOrder(ws: Events, watch: ArrivalWatch): void {
  const listeners = ws.listeners(MESSAGE) as Listener[]
  for (const listener of listeners) ws.off(MESSAGE, listener)
  let last: Promise<unknown> = Promise.resolve()
  // Baileys reports its own failures; the next message must come to its turn after any.
  const handOver = (stanza: BinaryNode) =>
    Promise.allSettled(listeners.map(async (listener) => listener(stanza)))
  ws.on(MESSAGE, (stanza: BinaryNode) => {
    if (watch.isIgnored(stanza)) return void handOver(stanza)
    watch.arrived(stanza)
    last = last.then(async () => {
      // What a closed connection has left is delivered again over the next one.
      if (ws.isOpen) await handOver(asLive(stanza))
      watch.done(stanza)
    })
  })
}

/** Of a message that waited Baileys does not say when it is done with it; to a bot there is no other difference. */
function asLive(stanza: BinaryNode): BinaryNode {
  const { offline: _, ...attrs } = stanza.attrs
  return { ...stanza, attrs }
}
