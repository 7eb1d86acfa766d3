/** What the gateway double remembers of a session: its events, numbered, and who is connected to it. */
import type { WebSocket } from 'ws'

export interface GatewayEvent {
  op: 0
  t: string
  s: number
  d: unknown
}

export class GatewaySession {
  readonly events: GatewayEvent[] = []
  socket: WebSocket | undefined
  private sequence = 0

  constructor(
    readonly id: string,
    readonly intents: number,
  ) {}

  /** Numbers the event, and sends it if somebody is connected; else it waits for a resume. */
  dispatch(type: string, data: unknown): void {
    this.sequence += 1
    const event: GatewayEvent = { op: 0, t: type, s: this.sequence, d: data }
    this.events.push(event)
    this.socket?.send(JSON.stringify(event))
  }

  /** @returns how many events were missed. */
  replay(socket: WebSocket, after: number): number {
    this.socket = socket
    const missed = this.events.filter((event) => event.s > after)
    for (const event of missed) socket.send(JSON.stringify(event))
    return missed.length
  }

  get last(): number {
    return this.sequence
  }
}
