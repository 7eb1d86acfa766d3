/** Where the suites of the WhatsApp session run: a kind of store that replicas share. */
import { MemoryStore } from '@botmesh/core'
import type { FencingStore } from './replica-store.js'

/** Nobody's data is there before. */
export interface SessionBed {
  /** A replica's own store, open, on the data that all stores of this bed share. */
  store(): Promise<FencingStore>
  /** Closes its stores. */
  close(): Promise<void>
}

export interface SessionPlace {
  name: string
  bed(): Promise<SessionBed>
}

export const memoryPlace: SessionPlace = {
  name: 'memory',
  bed: async () => {
    const shared = new MemoryStore()
    return { store: async () => shared, close: async () => {} }
  },
}
