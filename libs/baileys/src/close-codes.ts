/** What the end of a connection means: come back, or stay away (scenario 19). Pure. */
export interface ClosePolicy {
  /** For logs and states; stable. */
  reason: string
  /** `reconnect`: after a growing pause. `restart`: at once, the first time. `stop`: never by itself. */
  next: 'reconnect' | 'restart' | 'stop'
  /** For `stop`: what the operator should know. */
  advice?: string
}

const POLICIES: Record<number, ClosePolicy> = {
  401: {
    reason: 'logged-out',
    next: 'stop',
    advice: 'the device was removed on the phone, or never paired; it has to be paired again',
  },
  403: { reason: 'forbidden', next: 'stop', advice: 'WhatsApp refuses this account' },
  405: {
    reason: 'outdated-version',
    next: 'stop',
    advice: 'WhatsApp refuses this client version: update Baileys, or pass a newer socketOptions.version',
  },
  408: { reason: 'timed-out', next: 'reconnect' },
  411: {
    reason: 'multi-device-mismatch',
    next: 'stop',
    advice: 'the phone has to join the multi-device mode of WhatsApp',
  },
  419: { reason: 'logged-out', next: 'stop', advice: 'the device has to be paired again' },
  428: { reason: 'connection-closed', next: 'reconnect' },
  440: {
    reason: 'replaced',
    next: 'stop',
    advice: 'another connection took this session: reconnecting would throw that one out in turn',
  },
  500: { reason: 'bad-session', next: 'reconnect' },
  503: { reason: 'unavailable', next: 'reconnect' },
  515: { reason: 'restart-required', next: 'restart' },
}

export function closePolicy(code: number | undefined): ClosePolicy {
  if (code === undefined) return { reason: 'connection-closed', next: 'reconnect' }
  return POLICIES[code] ?? { reason: `code-${code}`, next: 'reconnect' }
}

/** The code that Baileys puts into the error of a closed connection (a Boom). */
export function codeOf(error: unknown): number | undefined {
  const output: unknown = (error as { output?: unknown } | null | undefined)?.output
  const code: unknown = (output as { statusCode?: unknown } | null | undefined)?.statusCode
  return typeof code === 'number' ? code : undefined
}
