/** The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), for one connection. */
import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto'

const ITERATIONS = 4096

interface Begun {
  user: string
  password: string | undefined
  salt: Buffer
  /** What both sides sign, so far. */
  text: string
}

export class ScramServer {
  private begun: Begun | null = null
  /** Whose password was right. */
  user: string | null = null

  constructor(private readonly passwordOf: (user: string) => string | undefined) {}

  /** @returns the server's first message. */
  start(clientFirst: string): string {
    const bare = clientFirst.replace(/^[^,]*,[^,]*,/, '')
    const user = (/n=([^,]*)/.exec(bare)?.[1] ?? '').replaceAll('=2C', ',').replaceAll('=3D', '=')
    const salt = randomBytes(16)
    const nonce = `${/r=([^,]*)/.exec(bare)?.[1] ?? ''}${randomBytes(18).toString('base64')}`
    const serverFirst = `r=${nonce},s=${salt.toString('base64')},i=${ITERATIONS}`
    this.begun = { user, password: this.passwordOf(user), salt, text: `${bare},${serverFirst}` }
    return serverFirst
  }

  /** @returns the server's last message; null if the password is wrong. */
  finish(clientFinal: string): string | null {
    const { begun } = this
    if (begun?.password === undefined) return null
    const proof = Buffer.from(/,p=(.*)$/.exec(clientFinal)?.[1] ?? '', 'base64')
    const text = `${begun.text},${clientFinal.replace(/,p=.*$/, '')}`
    const salted = pbkdf2Sync(begun.password, begun.salt, ITERATIONS, 32, 'sha256')
    const storedKey = createHash('sha256').update(sign(salted, 'Client Key')).digest()
    const signature = sign(storedKey, text)
    const clientKey = Buffer.from(proof.map((byte, n) => byte ^ (signature[n] ?? 0)))
    const found = createHash('sha256').update(clientKey).digest()
    if (!timingSafeEqual(found, storedKey)) return null
    this.user = begun.user
    return `v=${sign(sign(salted, 'Server Key'), text).toString('base64')}`
  }
}

function sign(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
