/**
 * A made-up person with a phone: the Signal side of a chat with the bot, on the library that the client ships.
 * Knows one correspondent, the bot's device.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { Curve, generateSignalPubKey, proto, signedKeyPair, type BinaryNode } from '@whiskeysockets/baileys'
import { GroupKeys } from './group-keys.js'
import { ProtocolAddress, SessionBuilder, SessionCipher, SessionRecord } from 'libsignal'

/** What the bot's device published: enough to write to it first. */
export interface PublishedKeys {
  registrationId: number
  identity: Uint8Array
  signedKeyId: number
  signedKey: Uint8Array
  signature: Uint8Array
}

const BOT = new ProtocolAddress('bot', 0)

export class SignalPerson {
  readonly groups = new GroupKeys()
  readonly registrationId = randomInt(1, 16_000)
  private readonly identity = Curve.generateKeyPair()
  private readonly signedKey = signedKeyPair(this.identity, 1)
  private readonly oneTime = Curve.generateKeyPair()
  private session: string | undefined

  /** @param phone digits; @param lid digits of the hidden id that WhatsApp pairs with it. */
  constructor(
    readonly phone: string,
    readonly lid: string,
    readonly name: string,
  ) {}

  get jid(): string {
    return `${this.phone}@s.whatsapp.net`
  }

  get lidJid(): string {
    return `${this.lid}@lid`
  }

  /** The `<user>` that answers a request for this person's keys. */
  bundle(jid: string): BinaryNode {
    const key = (id: number, value: Uint8Array, signature?: Uint8Array): BinaryNode[] => [
      { tag: 'id', attrs: {}, content: Buffer.from([0, 0, id]) },
      { tag: 'value', attrs: {}, content: value },
      ...(signature === undefined ? [] : [{ tag: 'signature', attrs: {}, content: signature }]),
    ]
    const registration = Buffer.alloc(4)
    registration.writeUInt32BE(this.registrationId)
    return {
      tag: 'user',
      attrs: { jid },
      content: [
        { tag: 'registration', attrs: {}, content: registration },
        { tag: 'type', attrs: {}, content: Buffer.from([5]) },
        { tag: 'identity', attrs: {}, content: this.identity.public },
        { tag: 'skey', attrs: {}, content: key(1, this.signedKey.keyPair.public, this.signedKey.signature) },
        { tag: 'key', attrs: {}, content: key(2, this.oneTime.public) },
      ],
    }
  }

  /** An `<enc>` for the bot's device. */
  async encrypt(message: proto.IMessage, bot: PublishedKeys): Promise<BinaryNode> {
    if (this.session === undefined) {
      await new SessionBuilder(this.storage, BOT).initOutgoing({
        registrationId: bot.registrationId,
        identityKey: generateSignalPubKey(bot.identity),
        signedPreKey: {
          keyId: bot.signedKeyId,
          publicKey: generateSignalPubKey(bot.signedKey),
          signature: bot.signature,
        },
        // The library's types ask for a one-time key that the protocol does not need.
      } as Parameters<SessionBuilder['initOutgoing']>[0])
    }
    const padded = pad(message)
    const { type, body } = await new SessionCipher(this.storage, BOT).encrypt(padded)
    const content = typeof body === 'string' ? Buffer.from(body, 'binary') : Buffer.from(body)
    return { tag: 'enc', attrs: { v: '2', type: type === 3 ? 'pkmsg' : 'msg' }, content }
  }

  async decrypt(enc: BinaryNode): Promise<proto.Message> {
    const cipher = new SessionCipher(this.storage, BOT)
    const sealed = Buffer.from(enc.content as Uint8Array)
    const padded =
      enc.attrs['type'] === 'pkmsg'
        ? await cipher.decryptPreKeyWhisperMessage(sealed)
        : await cipher.decryptWhisperMessage(sealed)
    const message = unpad(padded)
    const key = message.senderKeyDistributionMessage
    if (key) await this.groups.learn(key)
    return message
  }

  /** Into a group: the `<enc>`s for the bot's device. */
  async encryptForGroup(group: string, message: proto.IMessage, bot: PublishedKeys): Promise<BinaryNode[]> {
    const key = await this.encrypt(await this.groups.distribution(group), bot)
    const content = Buffer.from(await this.groups.encrypt(group, pad(message)))
    return [key, { tag: 'enc', attrs: { v: '2', type: 'skmsg' }, content }]
  }

  async decryptFromGroup(group: string, enc: BinaryNode): Promise<proto.Message> {
    return unpad(Buffer.from(await this.groups.decrypt(group, Buffer.from(enc.content as Uint8Array))))
  }

  private readonly storage = {
    loadSession: async () =>
      this.session === undefined ? undefined : SessionRecord.deserialize(JSON.parse(this.session)),
    storeSession: async (_id: string, record: SessionRecord) => {
      this.session = JSON.stringify(record.serialize())
    },
    isTrustedIdentity: () => true,
    loadPreKey: async (id: number | string) => (String(id) === '2' ? signalPair(this.oneTime) : undefined),
    removePreKey: () => {},
    loadSignedPreKey: () => signalPair(this.signedKey.keyPair),
    getOurRegistrationId: () => this.registrationId,
    getOurIdentity: () => ({
      privKey: Buffer.from(this.identity.private),
      pubKey: Buffer.from(generateSignalPubKey(this.identity.public)),
    }),
  }
}

function pad(message: proto.IMessage): Buffer {
  const padding = randomBytes(1)[0]! & 15 || 15
  return Buffer.concat([proto.Message.encode(message).finish(), Buffer.alloc(padding, padding)])
}

function unpad(padded: Buffer): proto.Message {
  return proto.Message.decode(padded.subarray(0, padded.length - (padded.at(-1) ?? 0)))
}

function signalPair(pair: { private: Uint8Array; public: Uint8Array }): { privKey: Buffer; pubKey: Buffer } {
  return { privKey: Buffer.from(pair.private), pubKey: Buffer.from(generateSignalPubKey(pair.public)) }
}
