/** The last thing that a bot does: it lets go of coordinator and store, which others may still use. */
import type { Clock } from '../contracts/clock.js'
import type { Coordinator } from '../contracts/coordinator.js'
import { ProviderError } from '../contracts/errors.js'
import type { Provider } from '../contracts/provider.js'
import type { Store } from '../contracts/store.js'
import { within } from '../runtime/within.js'
import { endUse } from '../runtime/shared-use.js'

export interface LettingGo {
  store: Store
  coordinator: Coordinator | null
  provider: Provider
  clock: Clock
  /** Null: nothing of the transport is connected. Else the account that this replica leads may still be, until then. */
  disconnected: Promise<void> | null
  report: (error: unknown) => void
}

/** Never rejects. Resolves without waiting for a transport that hangs. */
export async function letGo(parts: LettingGo): Promise<void> {
  const { store, disconnected, report } = parts
  if (disconnected === null) await letGoOfCoordinator(parts)
  else void onceDisconnected(parts, disconnected)
  try {
    await endUse(store, () => store.close?.())
  } catch (error) {
    report(error)
  }
}

/** P1: resigning now would let the next leader's connection meet this one. */
async function onceDisconnected(parts: LettingGo, disconnected: Promise<void>): Promise<void> {
  const { coordinator, clock, provider, report } = parts
  const leaseMs = coordinator?.leaseMs ?? 0
  const reason = `it did not stop in time; the leadership of its account is kept until it has, at most ${leaseMs} ms`
  const text = `Transport "${provider.id}": ${reason}, so that no other replica connects beside it.`
  report(new ProviderError(text, { provider: provider.id, reason, final: false }))
  await within(clock, leaseMs, disconnected)
  await letGoOfCoordinator(parts)
}

async function letGoOfCoordinator({ coordinator, report }: LettingGo): Promise<void> {
  try {
    if (coordinator !== null) await endUse(coordinator, () => coordinator.stop())
  } catch (error) {
    report(error)
  }
}
