/** Baileys' authentication state, kept in session records: credentials as `creds`, a key as `<type>-<id>`. */
import type {
  AuthenticationCreds,
  AuthenticationState,
  SignalDataSet,
  SignalDataTypeMap,
} from '@whiskeysockets/baileys'
import { LeaseLostError, ProviderError, type Logger } from '@botmesh/core'
import type { Library } from './library.js'
import type { SessionRecords } from './session-storage.js'

export interface WriteWatcher {
  /** The storage refused: another replica has opened the session with a higher fence. Told once; sealed then. */
  lost(error: LeaseLostError): void
  failed(error: unknown): void
}

export class AuthState {
  /** What Baileys takes as `auth`; it changes `creds` in place. */
  readonly state: AuthenticationState
  private sealed = false
  private watcher: WriteWatcher | undefined

  private constructor(
    private readonly library: Library,
    private readonly records: SessionRecords,
    private readonly logger: Logger,
    creds: AuthenticationCreds,
  ) {
    this.state = {
      creds,
      keys: { get: (type, ids) => this.get(type, ids), set: (data) => this.set(data) },
    }
  }

  /** @throws ProviderError (final) if there are credentials which are not what Baileys writes. */
  static async load(
    library: Library,
    records: SessionRecords,
    logger: Logger,
    provider: string,
  ): Promise<AuthState> {
    const text = (await records.read(['creds'])).get('creds')
    if (text === undefined) return new AuthState(library, records, logger, library.initAuthCreds())
    try {
      const creds = JSON.parse(text, library.BufferJSON.reviver) as AuthenticationCreds
      return new AuthState(library, records, logger, creds)
    } catch {
      // Without its cause: a parser quotes what it stumbles over, and here that is keys.
      throw new ProviderError(
        'The credentials of the session are damaged: remove the session and pair again.',
        { provider, reason: 'damaged-credentials', final: true },
      )
    }
  }

  /**
   * Drops what a pairing by code left that was not finished: Baileys takes a session that names its owner for a paired
   * one, logs in with it, and is told that it is logged out.
   */
  forgetUnfinishedPairing(): void {
    const { creds } = this.state
    if (creds.me === undefined || creds.account !== undefined) return
    delete creds.me
    delete creds.pairingCode
  }

  /** Who is told of writes that failed, from now on. */
  watch(watcher: WriteWatcher): void {
    this.watcher = watcher
  }

  /** Writes the credentials as they are now. Never rejects: failures go to the watcher. */
  async save(): Promise<void> {
    const text = JSON.stringify(this.state.creds, this.library.BufferJSON.replacer)
    await this.write(new Map([['creds', text]])).catch(() => {
      // The watcher was told.
    })
  }

  /**
   * From now on nothing is written. Baileys goes on with what it had begun when its socket closed; by then another
   * replica may have opened the session, and what this one would still write is older than what that one knows.
   */
  seal(): void {
    this.sealed = true
  }

  private async get<T extends keyof SignalDataTypeMap>(
    type: T,
    ids: string[],
  ): Promise<{ [id: string]: SignalDataTypeMap[T] }> {
    const found = await this.records.read(ids.map((id) => `${type}-${id}`))
    const values: { [id: string]: SignalDataTypeMap[T] } = {}
    for (const id of ids) {
      const json = found.get(`${type}-${id}`)
      if (json === undefined) continue
      try {
        values[id] = this.revive(type, json)
      } catch {
        // As if it were not there: the contact's keys are asked for again. The error would quote the key.
        this.logger.warn({ type }, 'whatsapp: a damaged key of the session is ignored')
      }
    }
    return values
  }

  private revive<T extends keyof SignalDataTypeMap>(type: T, json: string): SignalDataTypeMap[T] {
    const value: unknown = JSON.parse(json, this.library.BufferJSON.reviver)
    const isProto = type === 'app-state-sync-key'
    const { AppStateSyncKeyData } = this.library.proto.Message
    return (
      isProto ? AppStateSyncKeyData.fromObject(value as Record<string, unknown>) : value
    ) as SignalDataTypeMap[T]
  }

  private async set(data: SignalDataSet): Promise<void> {
    const changes = new Map<string, string | null>()
    for (const [type, values] of Object.entries(data)) {
      for (const [id, value] of Object.entries(values ?? {})) {
        const removed = value === null || value === undefined
        changes.set(`${type}-${id}`, removed ? null : JSON.stringify(value, this.library.BufferJSON.replacer))
      }
    }
    await this.write(changes)
  }

  private async write(changes: ReadonlyMap<string, string | null>): Promise<void> {
    if (this.sealed) return
    try {
      await this.records.write(changes)
    } catch (error) {
      if (error instanceof LeaseLostError) {
        if (!this.sealed) this.watcher?.lost(error)
        this.sealed = true
        return
      }
      this.watcher?.failed(error)
      throw error
    }
  }
}
