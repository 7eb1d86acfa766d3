/**
 * Who a visitor is: a random id that the server signs, so that nobody can read or write another visitor's chat
 * by guessing. The page keeps both; any replica with the same secret recognises them.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export interface VisitorPass {
  id: string
  sig: string
}

export class VisitorIdentity {
  constructor(
    private readonly account: string,
    private readonly secrets: readonly string[],
  ) {}

  /** A new visitor: 128 random bits. */
  issue(): VisitorPass {
    return this.sign(randomBytes(16).toString('base64url'))
  }

  /** The same visitor signed with the current secret. */
  sign(id: string): VisitorPass {
    return { id, sig: this.signature(this.secrets[0] ?? '', id).toString('base64url') }
  }

  /** Whether one of the secrets signed this pass; in constant time for each. */
  verify(pass: VisitorPass): boolean {
    const given = Buffer.from(pass.sig, 'base64url')
    return this.secrets.some((secret) => {
      const expected = this.signature(secret, pass.id)
      return given.length === expected.length && timingSafeEqual(given, expected)
    })
  }

  private signature(secret: string, id: string): Buffer {
    return createHmac('sha256', secret).update(`webchat-visitor-v1:${this.account}:${id}`).digest()
  }
}
