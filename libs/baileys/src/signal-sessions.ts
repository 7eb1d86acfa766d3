/**
 * One step at a time on a person's Signal sessions, each written before the next begins (D1).
 *
 * A session is read, advanced and written back whole. Baileys keeps that together by key transactions; but a send is
 * one transaction, from the question for the devices to the last byte, and a message that comes in is another. Each
 * would work on a copy of its own, and the later one would put keys back that the earlier has used: the next message
 * would be sealed with a key that has sealed one already, and the phone could not open it. So every step leaves the
 * transaction that it is part of and is one of its own, about the person whose sessions they are: by the hidden id, if
 * there is one, because that is where Baileys keeps them, whichever of the two a message goes by.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SignalKeyStoreWithTransaction, SocketConfig } from '@whiskeysockets/baileys'
import type { KeyedQueue } from './keyed-queue.js'
import type { Library } from './library.js'
import { inSignalQueue } from './signal-queue.js'
import { keepTried } from './tried-sessions.js'

export type MakeRepository = SocketConfig['makeSignalRepository']
export type Repository = ReturnType<MakeRepository>
type Sealed = Parameters<Repository['decryptMessage']>[0]

export class SignalSessions {
  /** Baileys' own, or the application's, step by step. */
  readonly repository: Repository
  /** Knows the same keys; what it makes of them is forgotten. */
  private readonly looking: Repository
  private readonly lookingKeys: SignalKeyStoreWithTransaction
  private readonly keys: SignalKeyStoreWithTransaction
  private readonly outside = AsyncLocalStorage.snapshot()

  /** @param queue of the account: a connection that is given up may still be at work beside the next one. */
  constructor(
    library: Library,
    private readonly queue: KeyedQueue,
    make: MakeRepository,
    ...[auth, logger, ...rest]: Parameters<MakeRepository>
  ) {
    // Baileys gives it so; only the type leaves it open.
    const keys = auth.keys as SignalKeyStoreWithTransaction
    this.keys = keys
    this.lookingKeys = library.addTransactionCapability(
      { get: (type, ids) => keys.get(type, ids), set: async () => {} },
      logger,
      { maxCommitRetries: 1, delayBetweenTriesMs: 0 },
    )
    this.looking = make({ creds: auth.creds, keys: this.lookingKeys }, logger, ...rest)
    this.repository = this.stepwise(make({ creds: auth.creds, keys: keepTried(keys) }, logger, ...rest))
  }

  /** What a message says. Afterwards the session is as before, and can open it again. */
  async look(sealed: Sealed): Promise<Uint8Array> {
    const open = () => this.named(sealed.jid, () => this.looking.decryptMessage(sealed))
    return this.inTurn(await this.personOf(sealed.jid), () => this.lookingKeys.transaction(open, sealed.jid))
  }

  private stepwise(inner: Repository): Repository {
    const step = async <T>(jid: string, run: () => Promise<T>) =>
      this.alone(await this.personOf(jid), () => this.named(jid, run))
    const steps: Pick<
      Repository,
      | 'close'
      | 'decryptMessage'
      | 'encryptGroupMessage'
      | 'encryptMessage'
      | 'injectE2ESession'
      | 'migrateSession'
    > = {
      decryptMessage: (opts) => step(opts.jid, () => inner.decryptMessage(opts)),
      encryptMessage: (opts) => step(opts.jid, () => inner.encryptMessage(opts)),
      injectE2ESession: (opts) => step(opts.jid, () => inner.injectE2ESession(opts)),
      // The account's own key of the group: nobody else's step is about it, but it must be written as early.
      encryptGroupMessage: (opts) => this.alone(`group ${opts.group}`, () => inner.encryptGroupMessage(opts)),
      // From the number to the hidden id: the only step that is about both.
      migrateSession: (from, to) => {
        const [number, hidden] = [this.nameOf(from), this.nameOf(to)]
        const run = () => this.outside(() => inner.migrateSession(from, to))
        return number === hidden ? run() : this.queue(number, () => this.queue(hidden, run))
      },
      close: () => {
        inner.close?.()
        this.looking.close?.()
      },
    }
    return { ...inner, ...steps }
  }

  /** As a transaction of its own, after what came before about this person. */
  private alone<T>(person: string, run: () => Promise<T>): Promise<T> {
    return this.inTurn(person, () => this.keys.transaction(run, `signal ${person}`))
  }

  private inTurn<T>(person: string, run: () => Promise<T>): Promise<T> {
    return this.queue(person, () => this.outside(run))
  }

  /** Last, because what waits here must be in its transaction already. */
  private named<T>(jid: string, run: () => Promise<T>): Promise<T> {
    return inSignalQueue(this.looking.jidToSignalProtocolAddress(jid), run)
  }

  /** Whose turn a step is: all devices of one together, as they move to the hidden id together. */
  private async personOf(jid: string): Promise<string> {
    return this.nameOf((await this.repository.lidMapping.getLIDForPN(jid)) ?? jid)
  }

  private nameOf(jid: string): string {
    return jid.replace(/(:\d+)?@(hosted\.)?/, '@').replace(/@hosted$/, '@s.whatsapp.net')
  }
}
