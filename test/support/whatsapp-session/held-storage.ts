/** The session in its folder, some of whose records can be held: what reads or writes them waits until they are let go. */
import { FolderStorage, type SessionStorage } from '@botmesh/baileys'

export interface HeldStorage {
  storage: SessionStorage
  /** From now on. */
  hold: () => void
  /** Resolves when something waits. */
  reached: Promise<void>
  /** For good. */
  release: () => void
}

export function heldStorage(
  folder: string,
  operation: 'read' | 'write',
  isHeld: (record: string) => boolean,
): HeldStorage {
  const inner = new FolderStorage(folder)
  let holding = false
  let reach: () => void = () => {}
  let release: () => void = () => {}
  const reached = new Promise<void>((resolve) => (reach = resolve))
  const released = new Promise<void>((resolve) => (release = resolve))
  const pass = async (now: 'read' | 'write', records: Iterable<string>) => {
    if (!holding || now !== operation || ![...records].some(isHeld)) return
    reach()
    await released
  }
  const storage: SessionStorage = {
    open: async (session) => {
      const records = await inner.open(session)
      return {
        read: async (names) => {
          await pass('read', names)
          return records.read(names)
        },
        write: async (changes) => {
          await pass('write', changes.keys())
          await records.write(changes)
        },
        retire: () => records.retire(),
        close: () => records.close(),
      }
    },
  }
  return { storage, hold: () => void (holding = true), reached, release: () => release() }
}
