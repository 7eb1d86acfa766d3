/**
 * A small append-only log per channel, shared by the replicas: how a transport whose client may be connected to
 * any replica (web chat) delivers what another replica sends, and replays what a reconnecting client missed.
 */
export interface LogEntry {
  /** Grows within its channel; compare only as an opaque string of that channel. */
  id: string
  payload: string
}

export interface MessageLog {
  /**
   * Appends and wakes the subscribers on every replica. Keeps the last `keep` entries (default 200) for `ttlMs`
   * (default one day) after the last append. Not idempotent: a lost reply may have appended.
   */
  append(channel: string, payload: string, options?: { keep?: number; ttlMs?: number }): Promise<string>
  /** Entries after `afterId` (or from the oldest kept), oldest first, at most `limit` (default 100). */
  read(channel: string, afterId: string | null, limit?: number): Promise<LogEntry[]>
  /** `onAppend` is a hint that `read` may return more; hints may be lost or doubled: poll slowly besides. */
  subscribe(channel: string, onAppend: () => void): Promise<() => Promise<void>>
}
