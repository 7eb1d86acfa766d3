/**
 * The server's side of WhatsApp Web's Noise XX handshake and its encrypted transport, over one WebSocket. What the
 * client library checks, this provides: a certificate chain down from a root key. The root's public key stands in
 * a constant of that library; `trustDoubleCertificates` replaces it in this process, once.
 */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import {
  Curve,
  decodeBinaryNode,
  encodeBinaryNode,
  hkdf,
  NOISE_MODE,
  NOISE_WA_HEADER,
  proto,
  WA_CERT_DETAILS,
  type BinaryNode,
  type KeyPair,
} from '@whiskeysockets/baileys'
import type { WebSocket } from 'ws'

const root = Curve.generateKeyPair()
const intermediate = Curve.generateKeyPair()
/** One identity for all links: signing it anew for each would be most of what a test costs. */
const identity = Curve.generateKeyPair()
let chain: Uint8Array | undefined

/** For another process: `BOTMESH_TEST_WHATSAPP_ROOT=<this> node --import …/trust-double.mjs …`. */
export function doubleRootKey(): string {
  return Buffer.from(root.public).toString('hex')
}

/** Makes this process's client library believe the doubles. Real servers are refused from then on. */
export function trustDoubleCertificates(): void {
  WA_CERT_DETAILS.PUBLIC_KEY = Buffer.from(root.public)
}

function certificates(): Uint8Array {
  const { Details } = proto.CertChain.NoiseCertificate
  const signed = (details: Uint8Array, key: KeyPair) => ({
    details,
    signature: Curve.sign(key.private, details),
  })
  const upper = Details.encode({
    serial: 1,
    issuerSerial: WA_CERT_DETAILS.SERIAL,
    key: intermediate.public,
  }).finish()
  const leaf = Details.encode({ serial: 2, issuerSerial: 1, key: identity.public }).finish()
  return proto.CertChain.encode({
    intermediate: signed(upper, root),
    leaf: signed(leaf, intermediate),
  }).finish()
}

/** Keys, hash and counters of the handshake, as both sides keep them. */
class SymmetricState {
  private hash = Buffer.from(NOISE_MODE)
  private salt: Uint8Array = this.hash
  private key: Uint8Array = this.hash
  private counter = 0

  authenticate(data: Uint8Array): void {
    this.hash = createHash('sha256').update(this.hash).update(data).digest()
  }

  mix(shared: Uint8Array): void {
    const [salt, key] = this.derive(shared)
    this.salt = salt
    this.key = key
    this.counter = 0
  }

  derive(data: Uint8Array): [Uint8Array, Uint8Array] {
    const derived = hkdf(data, 64, { salt: Buffer.from(this.salt), info: '' })
    return [derived.subarray(0, 32), derived.subarray(32)]
  }

  encrypt(plain: Uint8Array): Buffer {
    const sealed = seal(plain, this.key, this.counter++, this.hash)
    this.authenticate(sealed)
    return sealed
  }

  decrypt(sealed: Uint8Array): Buffer {
    const plain = unseal(sealed, this.key, this.counter++, this.hash)
    this.authenticate(sealed)
    return plain
  }
}

function nonce(counter: number): Buffer {
  const iv = Buffer.alloc(12)
  iv.writeUInt32BE(counter, 8)
  return iv
}

function seal(plain: Uint8Array, key: Uint8Array, counter: number, associated: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce(counter)).setAAD(associated)
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

function unseal(sealed: Uint8Array, key: Uint8Array, counter: number, associated: Uint8Array): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce(counter)).setAAD(associated)
  decipher.setAuthTag(sealed.subarray(sealed.length - 16))
  return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - 16)), decipher.final()])
}

interface LinkEvents {
  /** The handshake is complete: what the client says it is. */
  login: [proto.ClientPayload]
  node: [BinaryNode]
  error: [unknown]
}

/** One client, from its first byte. */
export class NoiseLink extends EventEmitter<LinkEvents> {
  private readonly state = new SymmetricState()
  private readonly ephemeral = Curve.generateKeyPair()
  private stage: 'intro' | 'hello' | 'finish' | 'open' = 'intro'
  private bytes = Buffer.alloc(0)
  private writeKey: Uint8Array = Buffer.alloc(0)
  private readKey: Uint8Array = Buffer.alloc(0)
  private written = 0
  private read = 0
  private reading: Promise<void> = Promise.resolve()

  constructor(readonly socket: WebSocket) {
    super()
    socket.on('message', (data) => {
      this.reading = this.reading
        .then(() => this.receive(data as Buffer))
        .catch((error: unknown) => void this.emit('error', error))
    })
  }

  send(node: BinaryNode): void {
    if (this.stage !== 'open') throw new Error('the handshake is not complete')
    this.frame(seal(encodeBinaryNode(node), this.writeKey, this.written++, Buffer.alloc(0)))
  }

  private async receive(data: Buffer): Promise<void> {
    this.bytes = Buffer.concat([this.bytes, data])
    if (this.stage === 'intro') this.readIntro()
    while (this.bytes.length >= 3) {
      const size = this.bytes.readUIntBE(0, 3)
      if (this.bytes.length < size + 3) return
      const frame = this.bytes.subarray(3, size + 3)
      this.bytes = this.bytes.subarray(size + 3)
      await this.onFrame(frame)
    }
  }

  /** `WA`, version, dictionary; before it, if the client was given one, a routing prefix. */
  private readIntro(): void {
    if (this.bytes.subarray(0, 2).toString() === 'ED') {
      this.bytes = this.bytes.subarray(7 + this.bytes.readUIntBE(4, 3))
    }
    if (!this.bytes.subarray(0, 4).equals(NOISE_WA_HEADER)) throw new Error('not a WhatsApp Web client')
    this.bytes = this.bytes.subarray(4)
    this.stage = 'hello'
  }

  private async onFrame(frame: Buffer): Promise<void> {
    if (this.stage === 'hello') return this.onHello(frame)
    if (this.stage === 'finish') return this.onFinish(frame)
    const plain = unseal(frame, this.readKey, this.read++, Buffer.alloc(0))
    this.emit('node', await decodeBinaryNode(plain))
  }

  private onHello(frame: Buffer): void {
    const theirs = proto.HandshakeMessage.decode(frame).clientHello?.ephemeral
    if (theirs === undefined || theirs === null) throw new Error('no client hello')
    this.theirEphemeral = theirs
    this.state.authenticate(NOISE_WA_HEADER)
    this.state.authenticate(theirs)
    this.state.authenticate(this.ephemeral.public)
    this.state.mix(Curve.sharedKey(this.ephemeral.private, theirs))
    const staticKey = this.state.encrypt(identity.public)
    this.state.mix(Curve.sharedKey(identity.private, theirs))
    const payload = this.state.encrypt((chain ??= certificates()))
    this.stage = 'finish'
    this.frame(
      proto.HandshakeMessage.encode({
        serverHello: { ephemeral: this.ephemeral.public, static: staticKey, payload },
      }).finish(),
    )
  }

  private onFinish(frame: Buffer): void {
    const finish = proto.HandshakeMessage.decode(frame).clientFinish
    if (!finish?.static || !finish.payload) throw new Error('no client finish')
    const theirStatic = this.state.decrypt(finish.static)
    this.state.mix(Curve.sharedKey(this.ephemeral.private, theirStatic))
    const payload = proto.ClientPayload.decode(this.state.decrypt(finish.payload))
    const [theirs, ours] = this.state.derive(Buffer.alloc(0))
    this.readKey = theirs
    this.writeKey = ours
    this.stage = 'open'
    this.emit('login', payload)
  }

  private theirEphemeral: Uint8Array = Buffer.alloc(0)

  private frame(data: Uint8Array): void {
    const header = Buffer.alloc(3)
    header.writeUIntBE(data.length, 0, 3)
    this.socket.send(Buffer.concat([header, data]))
  }
}
