/** What a bot says at start about what it cannot promise (S1, K2). */
import { MemoryCoordinator, MemoryStore } from '../memory/index.js'
import { isStateStore } from '../runtime/chat-access.js'
import type { ResolvedOptions } from './options.js'

export function warnAtStart(options: ResolvedOptions): void {
  const { store, coordinator, logger, name, provider } = options
  const warn = (message: string) =>
    logger.warn({ bot: name, store: store.kind, provider: provider.id }, message)
  if (options.scheduler !== null && coordinator === null && store instanceof MemoryStore) {
    warn(
      'The scheduler remembers in the memory of this process only: after a restart its tasks begin anew, and every replica runs them. Use a shared store.',
    )
  }
  // SQLite's file outlives the process; what is in memory does not, and durability would promise that it did.
  if (options.journal && coordinator === null && store instanceof MemoryStore) {
    warn(
      'With durability messages are kept in the memory of this process only: after a restart nothing of them is left. Use a store that keeps its data, or leave durability out.',
    )
  }
  if (coordinator === null) return
  // Coordinators of this process only: then one process' data is all there is.
  if (!store.shared && !(coordinator instanceof MemoryCoordinator)) {
    warn(
      `The ${store.kind} store keeps the data of this process only: on another replica a conversation is not found. Use a shared store with coordination across processes.`,
    )
  }
  if (isStateStore(store)) return
  if (store.setCheckpointIf === undefined || store.clearCheckpointIf === undefined) {
    warn(
      `The ${store.kind} store has no setCheckpointIf and clearCheckpointIf: checkpoints are guarded by this replica's own fence only, so a replica that was frozen could overwrite a newer one.`,
    )
  }
  warn(
    `The ${store.kind} store has no fenced state: messages are deduplicated per process only, and interrupted conversations leave no marker.`,
  )
}
