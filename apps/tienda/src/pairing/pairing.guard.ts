/** Lets in who knows the password, as the browser asks for it (HTTP Basic; the user's name does not matter). */
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

@Injectable()
export class PairingGuard implements CanActivate {
  constructor(@Inject(PAIRING_PASSWORD) private readonly password: string) {}

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp()
    const given = passwordOf(http.getRequest<IncomingMessage>().headers.authorization)
    if (given !== undefined && timingSafeEqual(digest(given), digest(this.password))) return true
    http
      .getResponse<ServerResponse>()
      .setHeader('www-authenticate', 'Basic realm="Tienda Aurora", charset="UTF-8"')
      .setHeader('cache-control', 'no-store')
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
