/**
 * Lets in who knows the password, as the browser asks for it (HTTP Basic; the user's name does not matter). Every answer
 * passes here, refusals too, and is told that it may not be kept, framed, guessed at or spoken of elsewhere.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  Inject,
  Injectable,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common'

export const PAIRING_PASSWORD = Symbol('pairing password')

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

@Injectable()
export class PairingGuard implements CanActivate {
  constructor(@Inject(PAIRING_PASSWORD) private readonly password: string) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp()
    const response = http.getResponse<ServerResponse>()
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
    const given = passwordOf(http.getRequest<IncomingMessage>().headers.authorization)
    if (given !== undefined && timingSafeEqual(digest(given), digest(this.password))) return true
    response.setHeader('www-authenticate', 'Basic realm="Tienda Aurora", charset="UTF-8"')
    throw new UnauthorizedException()
  }
}

function passwordOf(header: string | undefined): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(header ?? '') ?? []
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  return colon < 0 ? undefined : text.slice(colon + 1)
}

/** Of one length, so that they can be compared in constant time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
