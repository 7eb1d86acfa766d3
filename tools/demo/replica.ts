/** One replica as the demo sees it, whether it is a process of its own or lives in this one. */
export type ReplicaState = 'starting' | 'up' | 'frozen' | 'draining' | 'down'

/** A line of a replica's log that has a name. */
export interface ReplicaEvent {
  event: string
  replica: string
  [field: string]: unknown
}

export interface DemoReplica {
  readonly name: string
  readonly state: ReplicaState
  readonly port: number
  /** Resolves when it listens. */
  start(): Promise<void>
  /** Dies at once, releasing nothing. */
  kill(): Promise<void>
  /** Stands still, as in a long pause of the garbage collector. False where that cannot be shown. */
  freeze(): boolean
  thaw(): void
  /** Stops in order, as on a deploy. @returns milliseconds that it took. */
  drain(): Promise<number>
}

export type OnEvent = (event: ReplicaEvent) => void
