/** A session that fetches updates: exclusive, one replica at a time (P1). */
import { pause, ProviderError } from '@botmesh/core'
import { PollingLoop } from './polling-loop.js'
import { Session } from './session.js'

/** How long a stop waits for the runtime to accept what it was just given. */
const LAST_MESSAGES_MS = 3_000

export class PollingSession extends Session {
  protected async live(): Promise<void> {
    const { client, settings, sink } = this.parts
    void this.named()
    const loop = new PollingLoop(client, {
      provider: settings.id,
      pollTimeoutS: settings.pollTimeoutS,
      halt: this.halt,
      sink,
      context: this.context,
      named: (addressed) => this.namedFor(addressed),
      report: (state) => this.report(state),
      acknowledge: (callbackId) => this.acknowledge(callbackId),
    })
    const over = new AbortController()
    const end = await Promise.race([loop.run(), this.patienceAfterHalt(over.signal)])
    over.abort()
    if (end === 'halted') {
      // After a lost leadership somebody else may be polling: then not even a confirmation may be sent.
      if (loop.open && !this.lostLeadership) await loop.confirm()
    } else if (end !== 'impatient') {
      this.refuse(
        new ProviderError(`Telegram refuses the bot: ${end.refused}.`, {
          provider: settings.id,
          reason: end.refused,
          final: true,
        }),
      )
    }
  }

  /** Ends some time after the halt, unless `over` comes first. */
  private async patienceAfterHalt(over: AbortSignal): Promise<'impatient'> {
    const either = AbortSignal.any([this.halt, over])
    if (!either.aborted) {
      await new Promise<void>((resolve) => either.addEventListener('abort', () => resolve(), { once: true }))
    }
    await pause(this.sink.clock, LAST_MESSAGES_MS, over)
    return 'impatient'
  }
}
