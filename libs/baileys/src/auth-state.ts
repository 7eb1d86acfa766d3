/** Baileys' authentication state, kept in session records: credentials as `creds`, a key as `<type>-<id>`. */
import type { AuthenticationState, SignalDataSet, SignalDataTypeMap } from '@whiskeysockets/baileys'
import { LeaseLostError, ProviderError, type Logger } from '@botmesh/core'
import type { SessionRecords } from './session-storage.js'

type Library = typeof import('@whiskeysockets/baileys')

export interface WriteWatcher {
  /** The storage refused: another replica has opened the session with a higher fence. Told once; sealed then. */
  lost(error: LeaseLostError): void
  failed(error: unknown): void
}

export interface AuthState {
  state: AuthenticationState
  /** Writes the credentials as they are now. Never rejects: failures go to the watcher. */
  save(): Promise<void>
  /** Who is told of writes that failed, from now on. */
  watch(watcher: WriteWatcher): void
  /**
   * From now on nothing is written. Baileys goes on with what it had begun when its socket closed; by then another
   * replica may have opened the session, and what this one would still write is older than what that one knows.
   */
  seal(): void
}

/** @throws ProviderError (final) if the credentials are there but are not what Baileys writes. */
export async function loadAuthState(
  library: Library,
  records: SessionRecords,
  logger: Logger,
  provider: string,
): Promise<AuthState> {
  const { BufferJSON, initAuthCreds, proto } = library
  const text = (await records.read(['creds'])).get('creds')
  let sealed = false
  let watcher: WriteWatcher | undefined
  const creds = text === undefined ? initAuthCreds() : readCreds(text)

  function readCreds(json: string): ReturnType<typeof initAuthCreds> {
    try {
      return JSON.parse(json, BufferJSON.reviver) as ReturnType<typeof initAuthCreds>
    } catch (error) {
      throw new ProviderError(
        'The credentials of the session are damaged: remove the session and pair again.',
        { provider, reason: 'damaged-credentials', final: true },
        error,
      )
    }
  }

  async function get<T extends keyof SignalDataTypeMap>(
    type: T,
    ids: string[],
  ): Promise<{ [id: string]: SignalDataTypeMap[T] }> {
    const found = await records.read(ids.map((id) => `${type}-${id}`))
    const values: { [id: string]: SignalDataTypeMap[T] } = {}
    for (const id of ids) {
      const json = found.get(`${type}-${id}`)
      if (json === undefined) continue
      try {
        const value: unknown = JSON.parse(json, BufferJSON.reviver)
        values[id] = (
          type === 'app-state-sync-key'
            ? proto.Message.AppStateSyncKeyData.fromObject(value as Record<string, unknown>)
            : value
        ) as SignalDataTypeMap[T]
      } catch (error) {
        // As if it were not there: the contact's keys are asked for again.
        logger.warn({ err: error, provider, type }, 'whatsapp: a damaged key of the session is ignored')
      }
    }
    return values
  }

  async function set(data: SignalDataSet): Promise<void> {
    const changes = new Map<string, string | null>()
    for (const [type, values] of Object.entries(data)) {
      for (const [id, value] of Object.entries(values ?? {})) {
        changes.set(
          `${type}-${id}`,
          value === null || value === undefined ? null : JSON.stringify(value, BufferJSON.replacer),
        )
      }
    }
    await write(changes)
  }

  async function write(changes: ReadonlyMap<string, string | null>): Promise<void> {
    if (sealed) return
    try {
      await records.write(changes)
    } catch (error) {
      if (error instanceof LeaseLostError) {
        if (!sealed) watcher?.lost(error)
        sealed = true
        return
      }
      watcher?.failed(error)
      throw error
    }
  }

  return {
    state: { creds, keys: { get, set } },
    save: () =>
      write(new Map([['creds', JSON.stringify(creds, BufferJSON.replacer)]])).catch(() => {
        // The watcher was told.
      }),
    watch: (one) => {
      watcher = one
    },
    seal: () => {
      sealed = true
    },
  }
}
