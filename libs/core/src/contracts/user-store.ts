/**
 * `ctx.user`: state per user, while turns are per chat: two replicas may write one user at once, so writes are
 * compare-and-set by revision and the runtime merges independent fields and tries again.
 */
export interface UserRecord {
  /** Plain JSON. */
  data: Record<string, unknown>
  /** Globally unique per write; never reused. */
  revision: string
}

export abstract class UserStore {
  abstract getUser(userId: string): Promise<UserRecord | null>
  /**
   * Writes if the stored revision is still `expectedRevision` (null: no row). One atomic statement.
   * @returns the new revision, or null if somebody wrote in between. A lost reply: read again and compare.
   */
  abstract setUserIf(
    userId: string,
    data: Record<string, unknown>,
    expectedRevision: string | null,
  ): Promise<string | null>
}
