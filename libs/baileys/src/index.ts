/** Public face of `@botmesh/baileys`. */
export { BaileysProvider, type MessageRef } from './baileys.provider.js'
export type { BaileysOptions, BaileysLogger } from './options.js'
export type { SessionStorage, SessionRecords } from './session-storage.js'
export { FolderStorage } from './folder-storage.js'
export { importFolder, StoreStorage, type ImportOptions } from './store-storage.js'
export type { SessionStore } from './session-rows.js'
