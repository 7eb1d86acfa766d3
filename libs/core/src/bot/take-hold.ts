/**
 * The first thing that a bot does: it takes hold of store and coordinator, which others may use too, and opens them. It
 * gives up at once when it is stopped meanwhile, however long the servers behind them say nothing (N5). What it took hold
 * of is let go of in `let-go.ts`, also after that.
 */
import type { Coordinator } from '../contracts/coordinator.js'
import { beginUse, isIdle, isInUse } from '../runtime/shared-use.js'
import { unlessAborted } from '../runtime/within.js'
import type { ResolvedOptions } from './options.js'

export interface Held {
  /** For the log. */
  what: string
  resource: object
  /** Its last user will end it. */
  begunHere: boolean
  open: () => Promise<void>
  close: () => Promise<void>
}

/** `idle`: nobody has opened it yet. */
type Usable = Omit<Held, 'begunHere'> & { idle: boolean }

const PATIENCE_MS = 3000

/** Counts as a user of store and coordinator from now on. @throws only if nothing is held of either. */
export function takeHold(options: ResolvedOptions): readonly Held[] {
  const { store, coordinator, logger } = options
  store.useLogger?.(logger)
  coordinator?.useLogger?.(logger)
  const all: Usable[] = [
    {
      what: `${store.kind} store`,
      resource: store,
      idle: store.isOpen !== true,
      open: async () => await store.open?.(),
      close: async () => await store.close?.(),
    },
    ...(coordinator === null ? [] : [usableCoordinator(coordinator)]),
  ]
  return all.map(({ idle, ...one }) => ({ ...one, begunHere: beginUse(one.resource, idle) }))
}

/** @throws the signal's reason once it aborts; else what store and coordinator throw when they cannot be opened. */
export async function openHeld(
  options: ResolvedOptions,
  all: readonly Held[],
  signal: AbortSignal,
): Promise<void> {
  for (const one of all) await openPatiently(options, one, signal)
}

function usableCoordinator(coordinator: Coordinator): Usable {
  return {
    what: 'coordinator',
    resource: coordinator,
    idle: isIdle(coordinator),
    open: async () => await coordinator.start(),
    close: async () => await coordinator.stop(),
  }
}

/** An address that nobody answers at is tried for a while: after three seconds that is said. */
async function openPatiently(
  { clock, logger, name }: ResolvedOptions,
  held: Held,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted()
  const late = () =>
    logger.warn(
      { bot: name },
      `The ${held.what} does not answer yet: is its address right, and does it run? Still trying.`,
    )
  const timer = clock.setTimeout(late, PATIENCE_MS, { background: true })
  const opening = held.open()
  try {
    await unlessAborted(signal, opening)
  } catch (error) {
    const failed = (err: unknown) =>
      logger.warn({ bot: name, err }, `The ${held.what} could not be closed after the bot was stopped.`)
    if (signal.aborted) void closeLate(held, opening).catch(failed)
    throw error
  } finally {
    timer.cancel()
  }
}

/** What opens after all, though it was closed before that, is closed once more, unless it is somebody's by now. */
async function closeLate({ resource, begunHere, close }: Held, opening: Promise<void>): Promise<void> {
  const opened = await opening.then(
    () => true,
    () => false,
  )
  if (opened && begunHere && !isInUse(resource)) await close()
}
