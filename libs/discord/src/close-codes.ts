/** What the end of a gateway connection means: go on with the session, begin a new one, or stay away. Pure. */
export interface ClosePolicy {
  /** For logs and states; stable. */
  reason: string
  /** `resume`: the session goes on, missed events come. `identify`: a new one. `stop`: never by itself. */
  next: 'resume' | 'identify' | 'stop'
  /** For `stop`: what the operator should do. */
  advice?: string
}

const POLICIES: Record<number, ClosePolicy> = {
  1000: { reason: 'closed-by-discord', next: 'identify' },
  4000: { reason: 'unknown-error', next: 'resume' },
  4001: { reason: 'unknown-opcode', next: 'resume' },
  4002: { reason: 'decode-error', next: 'resume' },
  4003: { reason: 'not-authenticated', next: 'identify' },
  4004: {
    reason: 'wrong-token',
    next: 'stop',
    advice:
      'Discord refuses the token: it is wrong or was reset. Take the current one from the Developer Portal (your application, Bot, Reset Token)',
  },
  4005: { reason: 'already-authenticated', next: 'identify' },
  4007: { reason: 'invalid-sequence', next: 'identify' },
  4008: { reason: 'rate-limited', next: 'identify' },
  4009: { reason: 'session-timed-out', next: 'identify' },
  4010: {
    reason: 'invalid-shard',
    next: 'stop',
    advice: 'Discord refuses this shard: update @botmesh/discord',
  },
  4011: {
    reason: 'sharding-required',
    next: 'stop',
    advice: 'the bot is in more than 2500 servers, which needs several shards; this transport connects one',
  },
  4012: {
    reason: 'invalid-api-version',
    next: 'stop',
    advice: 'Discord has retired this version of its gateway: update discord.js and @botmesh/discord',
  },
  4013: {
    reason: 'invalid-intents',
    next: 'stop',
    advice: 'Discord does not know the intents asked for: update discord.js and @botmesh/discord',
  },
  4014: {
    reason: 'disallowed-intents',
    next: 'stop',
    advice:
      "the Message Content intent is off: turn it on in the Developer Portal (your application, Bot, Privileged Gateway Intents), or set messageContent: false and listen: 'mentions'",
  },
}

/** @param code undefined: the connection broke, or was given up by this side. */
export function closePolicy(code: number | undefined): ClosePolicy {
  if (code === undefined || code === 1006) return { reason: 'connection-lost', next: 'resume' }
  return POLICIES[code] ?? { reason: `code-${code}`, next: 'resume' }
}
