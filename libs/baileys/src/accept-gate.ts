/**
 * Holds WhatsApp's "received" back until the runtime has the message (D1, scenario 17).
 *
 * Baileys acknowledges a message as soon as it has decrypted it, and tells of it afterwards. But decrypting goes
 * through a repository of Signal keys that the client may be given: this one hands the message over in between, and
 * lets the decrypted text go on to Baileys only once it was accepted. Both happen inside the transaction that advances
 * the sender's keys. So whoever dies, or refuses, in between has neither acknowledged the message nor used up its key:
 * WhatsApp delivers it again, and the next leader can read it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type {
  BinaryNode,
  proto,
  SignalKeyStoreWithTransaction,
  SocketConfig,
  WAMessage,
} from '@whiskeysockets/baileys'
import type { Library } from './library.js'
import { inSignalQueue } from './signal-queue.js'

type MakeRepository = SocketConfig['makeSignalRepository']
type Repository = ReturnType<MakeRepository>

export interface GateOptions {
  library: Library
  /** The account's own addresses, once it is paired. */
  me(): { id: string; lid: string } | undefined
  /** Resolves once the message need not be delivered again; rejects if it must be. */
  accept(message: WAMessage): Promise<void>
}

export class AcceptGate {
  /** Sealed content → the stanza that it came in. */
  private readonly stanzas = new WeakMap<object, BinaryNode>()
  /** Handlers must not run inside the key transaction: what they send would be part of it. */
  private readonly outside = AsyncLocalStorage.snapshot()

  constructor(private readonly options: GateOptions) {}

  /** To be called with each message stanza before Baileys works on it. */
  note(stanza: BinaryNode): void {
    if (!Array.isArray(stanza.content)) return
    for (const { tag, content } of stanza.content) {
      if (tag === 'enc' && content instanceof Uint8Array) this.stanzas.set(content, stanza)
    }
  }

  /** Baileys' own repository, or the application's, with the gate in it. */
  repository(make: MakeRepository): MakeRepository {
    return (auth, ...rest) => {
      const inner = make(auth, ...rest)
      // Baileys gives it so; only the type leaves it open.
      const keys = auth.keys as SignalKeyStoreWithTransaction
      const atomically = (key: string, sealed: Uint8Array, open: () => Promise<Uint8Array>) =>
        keys.transaction(async () => {
          const plain = await open()
          await this.pass(sealed, plain)
          return plain
        }, key)
      const queued = <T>(jid: string, run: () => Promise<T>) =>
        inSignalQueue(inner.jidToSignalProtocolAddress(jid), run)
      const gated: Pick<Repository, 'decryptMessage' | 'decryptGroupMessage'> = {
        decryptMessage: (opts) =>
          atomically(opts.jid, opts.ciphertext, () => queued(opts.jid, () => inner.decryptMessage(opts))),
        decryptGroupMessage: (opts) =>
          atomically(opts.group, opts.msg, () => inner.decryptGroupMessage(opts)),
      }
      // Keys before the queue, as above: the other way round the two would wait for each other.
      const apart: Pick<Repository, 'encryptMessage' | 'injectE2ESession'> = {
        encryptMessage: (opts) =>
          keys.transaction(() => queued(opts.jid, () => inner.encryptMessage(opts)), opts.jid),
        injectE2ESession: (opts) =>
          keys.transaction(() => queued(opts.jid, () => inner.injectE2ESession(opts)), opts.jid),
      }
      return { ...inner, ...gated, ...apart }
    }
  }

  private async pass(sealed: Uint8Array, plain: Uint8Array): Promise<void> {
    const stanza = this.stanzas.get(sealed)
    const me = this.options.me()
    if (stanza === undefined || me === undefined) return
    const message = this.read(stanza, plain, me)
    if (message !== null) await this.outside(() => this.options.accept(message))
  }

  /** As Baileys will tell of it; null if that cannot be made out: then Baileys does so alone. */
  private read(stanza: BinaryNode, plain: Uint8Array, me: { id: string; lid: string }): WAMessage | null {
    const { decodeMessageNode, proto, unpadRandomMax16 } = this.options.library
    try {
      const { fullMessage } = decodeMessageNode(stanza, me.id, me.lid)
      const content: proto.IMessage = proto.Message.decode(unpadRandomMax16(plain))
      fullMessage.message = content.deviceSentMessage?.message ?? content
      return fullMessage
    } catch {
      return null
    }
  }
}
