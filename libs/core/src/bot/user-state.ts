/**
 * `ctx.user`: JSON state per user, while turns are per chat. Two replicas may work for one user at once, in two
 * chats, so a write is compare-and-set by revision: if somebody wrote in between, what changed here is merged into
 * what is there now, field by field and into nested objects, and tried again. Of one and the same field the later
 * write wins.
 *
 * It is written when the message has been handled, before its turn ends, so that the chat's next message finds it.
 */
import type { UserStore } from '../contracts/user-store.js'
import { StoreError } from '../contracts/errors.js'

type Json = Record<string, unknown>

const MAX_WRITES = 20

export class UserState {
  private constructor(
    private readonly store: UserStore,
    private readonly kind: string,
    private readonly userId: string,
    /** What handlers see and change. */
    readonly data: Json,
    private revision: string | null,
    private base: string,
  ) {}

  static async load(store: UserStore, kind: string, userId: string): Promise<UserState> {
    const record = await store.getUser(userId)
    return UserState.of(store, kind, userId, record)
  }

  /** From a record that came along with something else. */
  static of(
    store: UserStore,
    kind: string,
    userId: string,
    record: { data: Json; revision: string } | null,
  ): UserState {
    const base = JSON.stringify(record?.data ?? {})
    return new UserState(store, kind, userId, JSON.parse(base) as Json, record?.revision ?? null, base)
  }

  /** Writes what changed since it was read; nothing if nothing did. @throws StoreError */
  async save(): Promise<void> {
    const mine = JSON.stringify(this.data)
    if (mine === this.base) return
    const before = JSON.parse(this.base) as Json
    const after = JSON.parse(mine) as Json
    let [next, expected] = [after, this.revision]
    for (let attempt = 0; attempt < MAX_WRITES; attempt++) {
      const written = await this.store.setUserIf(this.userId, next, expected)
      if (written !== null) {
        this.revision = written
        this.base = JSON.stringify(next)
        return
      }
      const theirs = await this.store.getUser(this.userId)
      next = mergeChanges(before, after, theirs?.data ?? {})
      expected = theirs?.revision ?? null
    }
    throw new StoreError(
      `The state of user "${this.userId}" could not be written: it changed ${MAX_WRITES} times meanwhile.`,
      { store: this.kind, operation: 'setUserIf', key: this.userId },
      { retryable: true },
    )
  }
}

/** Applies what changed from `before` to `after` to `theirs`. Arrays are replaced as a whole. */
export function mergeChanges(before: Json, after: Json, theirs: Json): Json {
  const merged: Json = { ...theirs }
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now, other] = [before[name], after[name], theirs[name]]
    if (JSON.stringify(old) === JSON.stringify(now)) continue
    if (now === undefined) delete merged[name]
    else
      merged[name] =
        isObject(now) && isObject(other) ? mergeChanges(isObject(old) ? old : {}, now, other) : now
  }
  return merged
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
