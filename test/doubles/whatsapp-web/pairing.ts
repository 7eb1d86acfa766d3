/** The stanza that pairs a device: what the owner's phone signs after it has scanned the QR code. */
import { createHmac } from 'node:crypto'
import { Curve, proto, type BinaryNode } from '@whiskeysockets/baileys'

const owner = Curve.generateKeyPair()

/** @param secret the last key of the QR code, in base64: proves that the phone has seen it. */
export function pairSuccess(
  id: string,
  phone: string,
  device: number,
  identity: Uint8Array,
  secret: string,
): BinaryNode {
  const details = proto.ADVDeviceIdentity.encode({ rawId: 1, timestamp: 1, keyIndex: device }).finish()
  const signed = proto.ADVSignedDeviceIdentity.encode({
    details,
    accountSignatureKey: owner.public,
    accountSignature: Curve.sign(owner.private, Buffer.concat([Buffer.from([6, 0]), details, identity])),
  }).finish()
  const hmac = createHmac('sha256', Buffer.from(secret, 'base64')).update(signed).digest()
  const sealed = proto.ADVSignedDeviceIdentityHMAC.encode({ details: signed, hmac }).finish()
  return {
    tag: 'iq',
    attrs: { from: 's.whatsapp.net', type: 'set', id, t: seconds() },
    content: [
      {
        tag: 'pair-success',
        attrs: {},
        content: [
          { tag: 'device-identity', attrs: {}, content: sealed },
          { tag: 'device', attrs: { jid: `${phone}:${device}@s.whatsapp.net`, lid: lidOf(phone, device) } },
          { tag: 'platform', attrs: { name: 'android' } },
        ],
      },
    ],
  }
}

/** The hidden id of the account itself. */
export function lidOf(phone: string, device: number): string {
  return `9${phone}:${device}@lid`
}

export function seconds(): string {
  return String(Math.floor(Date.now() / 1000))
}
