/**
 * The gateway session, kept where all replicas see it, so that the next leader resumes it: Discord then delivers what
 * came while nobody was connected. Kept in the store's message log, if the store has one; without it the next leader
 * begins a session of its own, and what was written in between is missed. Stale by a second at most: what is delivered
 * again because of that is dropped by its id.
 */
import type { SessionInfo } from '@discordjs/ws'
import type { ProviderSink, Timer } from '@botmesh/core'
import { z } from 'zod'

const schema = z.object({
  sessionId: z.string().min(1),
  sequence: z.number().int().nonnegative(),
  resumeURL: z.url({ protocol: /^wss?$/ }),
})

/** Discord forgets a session a few minutes after its connection has gone. */
const KEPT_MS = 600_000
const WRITE_EVERY_MS = 1_000
/** Neither a start nor a stop waits longer for the store. */
const STORE_MS = 1_000

export class SessionRecord {
  private readonly channel: string
  private timer: Timer | undefined
  private written: string | undefined
  private sealed = false

  constructor(
    provider: string,
    private readonly sink: ProviderSink,
    private readonly read: () => SessionInfo | null,
  ) {
    this.channel = `${provider}:session`
  }

  /** True if another replica could resume the session. */
  get shared(): boolean {
    return this.sink.log !== undefined
  }

  /** @returns null if there is none, or the store does not say. Never rejects. */
  async load(): Promise<SessionInfo | null> {
    const { log } = this.sink
    if (log === undefined) return null
    const entries = await this.bounded(log.read(this.channel, null, 1))
    const { payload } = entries?.at(-1) ?? {}
    if (payload === undefined) return null
    const parsed = schema.safeParse(jsonOf(payload))
    return parsed.success ? { ...parsed.data, shardId: 0, shardCount: 1 } : null
  }

  /** Something has changed: writes it within a second. */
  touch(): void {
    if (this.sink.log === undefined || this.sealed) return
    this.timer ??= this.sink.clock.setTimeout(
      () => {
        this.timer = undefined
        void this.write()
      },
      WRITE_EVERY_MS,
      { background: true },
    )
  }

  /** Writes now what is not written yet. Never rejects; takes a second at most. */
  async write(): Promise<void> {
    const { log } = this.sink
    const session = this.read()
    if (log === undefined || session === null || this.sealed) return
    const { sessionId, sequence, resumeURL } = session
    const payload = JSON.stringify({ sessionId, sequence, resumeURL })
    if (payload === this.written) return
    this.written = payload
    await this.bounded(log.append(this.channel, payload, { keep: 1, ttlMs: KEPT_MS }))
  }

  /** Writes no more: the session may be another replica's by now. */
  seal(): void {
    this.sealed = true
    this.timer?.cancel()
  }

  private async bounded<T>(call: Promise<T>): Promise<T | undefined> {
    let timer: Timer | undefined
    const late = new Promise<undefined>((resolve) => {
      timer = this.sink.clock.setTimeout(() => resolve(undefined), STORE_MS)
    })
    const settled = call.catch((error: unknown) => {
      this.written = undefined
      this.sink.logger.debug(
        { err: error, channel: this.channel },
        'discord: the store does not keep the session',
      )
      return undefined
    })
    try {
      return await Promise.race([settled, late])
    } finally {
      timer?.cancel()
    }
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
