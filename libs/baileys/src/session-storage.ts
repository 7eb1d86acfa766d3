/**
 * Where a WhatsApp session (credentials and keys) is kept. A folder is one implementation; the bot's store, fenced by
 * the leadership of `provider:<id>`, is the other (Z9).
 */
export interface SessionStorage {
  /**
   * Opens one session, empty if it is new.
   * @param fence of `provider:<id>`, under coordination. A storage that can must refuse, from now on and with a
   *   `LeaseLostError`, the writes of whoever opened the session with a lower one.
   */
  open(session: string, fence?: number): Promise<SessionRecords>
}

/** Named records, each a text. Names are Baileys': `creds`, `pre-key-7`, `session-1.0`, …. */
export interface SessionRecords {
  /** Parts of the session that could not be read at the opening, in words for a log; it works without them. */
  readonly damaged?: readonly string[]
  /** Those that exist. Sees what `write` was given, also before it resolved. */
  read(names: readonly string[]): Promise<Map<string, string>>
  /**
   * Writes texts and removes nulls. Resolves once they are durable. Each record is changed wholly or not at all,
   * also if the process is killed meanwhile; later calls win over earlier ones. May be called concurrently.
   */
  write(changes: ReadonlyMap<string, string | null>): Promise<void>
  /** Puts the whole session aside (it was logged out): the next `open` finds it empty. */
  retire(): Promise<void>
  /** Resolves when nothing is being written any more. Never rejects. */
  close(): Promise<void>
}
