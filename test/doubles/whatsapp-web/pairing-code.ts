/** The phone's side of pairing by a code: the owner types on the phone what the bot shows. */
import { createDecipheriv, randomBytes } from 'node:crypto'
import {
  aesDecryptCTR,
  aesEncryptCTR,
  Curve,
  derivePairingCodeKey,
  hkdf,
  type BinaryNode,
} from '@whiskeysockets/baileys'
import { child } from './queries.js'

function bytesOf(node: BinaryNode | undefined, tag: string): Buffer {
  const content = child(node, tag)?.content
  if (!(content instanceof Uint8Array)) throw new Error(`no ${tag}`)
  return Buffer.from(content)
}

export class PairingByCode {
  private readonly ephemeral = Curve.generateKeyPair()
  private readonly identity = Curve.generateKeyPair()
  private companionEphemeral: Uint8Array = Buffer.alloc(0)

  /** @param hello what the device sent when it made its code. */
  constructor(private readonly hello: BinaryNode) {}

  /** The code was typed. @returns what the device is told. */
  async typed(code: string): Promise<BinaryNode> {
    const wrapped = bytesOf(this.hello, 'link_code_pairing_wrapped_companion_ephemeral_pub')
    const key = await derivePairingCodeKey(code, wrapped.subarray(0, 32))
    this.companionEphemeral = aesDecryptCTR(wrapped.subarray(48, 80), key, wrapped.subarray(32, 48))
    const salt = randomBytes(32)
    const iv = randomBytes(16)
    const sealed = aesEncryptCTR(this.ephemeral.public, await derivePairingCodeKey(code, salt), iv)
    const part = (tag: string, content: Uint8Array): BinaryNode => ({ tag, attrs: {}, content })
    return {
      tag: 'notification',
      attrs: { from: 's.whatsapp.net', type: 'link_code_companion_reg', id: 'code-1' },
      content: [
        {
          tag: 'link_code_companion_reg',
          attrs: { stage: 'primary_hello' },
          content: [
            part('link_code_pairing_wrapped_primary_ephemeral_pub', Buffer.concat([salt, iv, sealed])),
            part('primary_identity_pub', this.identity.public),
            part('link_code_pairing_ref', Buffer.from('ref')),
          ],
        },
      ],
    }
  }

  /** @param finish the device's answer. @returns the secret that both sides share now, in base64. */
  secret(finish: BinaryNode): string {
    const bundle = bytesOf(finish, 'link_code_pairing_wrapped_key_bundle')
    const companionIdentity = bytesOf(finish, 'companion_identity_public')
    const shared = Curve.sharedKey(this.ephemeral.private, this.companionEphemeral)
    const key = hkdf(shared, 32, {
      salt: bundle.subarray(0, 32),
      info: 'link_code_pairing_key_bundle_encryption_key',
    })
    const decipher = createDecipheriv('aes-256-gcm', key, bundle.subarray(32, 44))
    decipher.setAuthTag(bundle.subarray(bundle.length - 16))
    const plain = Buffer.concat([decipher.update(bundle.subarray(44, bundle.length - 16)), decipher.final()])
    const identityShared = Curve.sharedKey(this.identity.private, companionIdentity)
    const material = Buffer.concat([shared, identityShared, plain.subarray(64, 96)])
    return Buffer.from(hkdf(material, 32, { info: 'adv_secret' })).toString('base64')
  }
}
