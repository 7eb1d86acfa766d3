/**
 * Holds WhatsApp's "received" back until the runtime has the message (D1, scenario 17).
 *
 * Baileys acknowledges a message as soon as it has decrypted it, and tells of it afterwards. But decrypting goes
 * through a repository of Signal keys that the client may be given: this one looks what the message says, hands it over,
 * and opens it for good, so that Baileys has it, only once it was accepted. So whoever dies, or refuses, in between has
 * neither acknowledged the message nor used up its key: WhatsApp delivers it again, and the next leader can read it.
 * Meanwhile nothing is held: an answer to the same person may go out while the message waits, for a minute if it is
 * refused, and needs the same session.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { BinaryNode, proto, SignalKeyStoreWithTransaction, WAMessage } from '@whiskeysockets/baileys'
import type { KeyedQueue } from './keyed-queue.js'
import type { Library } from './library.js'
import { SignalSessions, type MakeRepository, type Repository } from './signal-sessions.js'

export interface GateOptions {
  library: Library
  /** Of the account, for all its connections. */
  queue: KeyedQueue
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
      const { library, queue } = this.options
      const sessions = new SignalSessions(library, queue, make, auth, ...rest)
      const inner = sessions.repository
      // Baileys gives it so; only the type leaves it open.
      const keys = auth.keys as SignalKeyStoreWithTransaction
      const gated: Pick<Repository, 'decryptMessage' | 'decryptGroupMessage'> = {
        decryptMessage: async (opts) => {
          await this.pass(opts.ciphertext, await sessions.look(opts))
          return inner.decryptMessage(opts)
        },
        // The writer's key of the group, which no answer needs: it may be held.
        decryptGroupMessage: (opts) =>
          keys.transaction(async () => {
            const plain = await inner.decryptGroupMessage(opts)
            await this.pass(opts.msg, plain)
            return plain
          }, opts.group),
      }
      return { ...inner, ...gated }
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
