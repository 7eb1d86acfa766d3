/**
 * What the conformance of providers is checked on: one account of the platform, played by the driver's author, and
 * what that platform does and does not do.
 */
import type { Provider, WebhookRequest } from '../../contracts/provider.js'
import { RecordingSink } from '../recording-sink.js'

export interface ProviderGuarantees {
  /** It holds a connection that opens by itself once started; webhooks do not. */
  connects: boolean
  /** Sends that the platform refuses for good are `final`. */
  refusesSends: boolean
  /** The platform delivers again what the runtime did not accept. Default false. */
  redelivers?: boolean
  /** It has groups: the bed has `groupWrites`. Default false. */
  groups?: boolean
  /** The platform refuses wrong credentials when it connects: the bed has `refused`. Default false. */
  refusesCredentials?: boolean
  /** Its connection can break and be made again: the bed has `outage`. Default false. */
  reconnects?: boolean
  /** The platform says how long to wait before the next send. Default false. */
  limitsSends?: boolean
  /** A send's answer can get lost after the platform acted on it. Default false. */
  losesAnswers?: boolean
  /** It is called by the platform (`handle`). Default false. */
  webhook?: boolean
}

/** One account of the platform, played by the driver's author. */
export interface ProviderBed {
  provider: Provider
  /** Connections of the account at present. */
  connections(): number
  /** A user writes; resolves when the platform has delivered it (not: when it was accepted). */
  userWrites(body: string): Promise<void>
  /** Texts that reached the user. */
  received(): string[]
  /** The platform refuses the next send for good. */
  refuseNextSend?(): void
  /** The platform refuses the next send, and asks to wait (whole seconds). */
  limitNextSend?(retryAfterMs: number): void
  /** The platform acts on the next send, but its answer never comes. */
  loseNextAnswer?(): void
  /** Webhook calls: as they should be, and otherwise. */
  requests?: {
    unsigned(): WebhookRequest
    notJson(): WebhookRequest
    tooLarge(): WebhookRequest
    unknownEvent(): WebhookRequest
    /** A call as it should be. */
    good(): WebhookRequest
  }
  /** Somebody writes in a group. */
  groupWrites?(body: string): Promise<void>
  /** A chat beside the one that `userWrites` writes in. */
  otherChat?: string
  /** A provider of the same platform whose credentials the platform refuses. */
  refused?(): Provider
  /** What must be in no log, no state and no error. */
  secrets?: readonly string[]
  /** The connection breaks, and the platform takes no other until the returned function is called. */
  outage?(): () => void
  close(): Promise<void>
}

export interface ProviderFixture {
  name: string
  guarantees: ProviderGuarantees
  bed(): Promise<ProviderBed>
}

/** A test on a bed of its own, which is stopped and closed whatever happens. */
export function onProvider(
  fixture: ProviderFixture,
  test: (bed: ProviderBed, sink: RecordingSink, leave: AbortController) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const bed = await fixture.bed()
    try {
      await test(bed, new RecordingSink(), new AbortController())
    } finally {
      await bed.provider.stop()
      await bed.close()
    }
  }
}
