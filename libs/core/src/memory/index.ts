/** The in-process store and coordinator. */
export { MemoryStore, type MemoryLeases, type MemoryStoreOptions } from './memory-store.js'
export { MemoryCoordinationHub, type MemoryCoordinationHubOptions } from './memory-hub.js'
export { MemoryBackend, MemoryCoordinator, type MemoryCoordinatorOptions } from './memory-coordinator.js'
export { MemoryLog } from './memory-log.js'
