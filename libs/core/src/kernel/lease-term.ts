/**
 * How long a replica may trust its own lease (L1, L2, I7). The backend counts `leaseMs` from when it executed the
 * renewal; this side can only know that this was not before the attempt *started*. So it trusts `leaseMs` from
 * that start, less a margin for clocks that run at different speeds. All instants are of one local monotonic clock.
 */
export interface LeaseTerm {
  readonly leaseMs: number
  /** From this instant on nothing may be done in the lease's name. */
  readonly trustUntil: number
}

/** A twentieth of a lease: two quartz clocks drift apart far less; the rest covers a late timer. */
export function leaseMarginMs(leaseMs: number): number {
  return leaseMs / 20
}

export function renewEveryMs(leaseMs: number): number {
  return leaseMs / 3
}

/** The term after a creation or renewal that was attempted at `startedAt` and confirmed. */
export function leaseTerm(leaseMs: number, startedAt: number): LeaseTerm {
  return { leaseMs, trustUntil: startedAt + leaseMs - leaseMarginMs(leaseMs) }
}

/** A confirmation never shortens a term: replies may arrive out of order. */
export function laterTerm(one: LeaseTerm, other: LeaseTerm): LeaseTerm {
  return other.trustUntil > one.trustUntil ? other : one
}

export function isTrusted(term: LeaseTerm, now: number): boolean {
  return now < term.trustUntil
}

/**
 * A turn is never handed to the application with less than two thirds of a lease, so that a fresh turn does not
 * die under it. With renewals every third this holds at all times but for the margin, unless a renewal failed.
 */
export function enoughToHandOver(term: LeaseTerm, now: number): boolean {
  return term.trustUntil - now >= (term.leaseMs * 2) / 3 - 2 * leaseMarginMs(term.leaseMs)
}
