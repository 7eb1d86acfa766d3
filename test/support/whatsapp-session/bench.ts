/** A provider against the double of WhatsApp Web, with a session folder of its own. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { RecordingSink } from '@botmesh/core/testing'
import { BaileysProvider, type BaileysOptions } from '@botmesh/baileys'
import {
  SignalPerson,
  trustDoubleCertificates,
  WhatsAppWebDouble,
  type DoubleAccount,
} from '../../doubles/whatsapp-web/index.js'

trustDoubleCertificates()

let seed: { folder: string; account: DoubleAccount } | undefined

/** After the last test of a file. */
export async function forgetSeed(): Promise<void> {
  if (seed !== undefined) await rm(seed.folder, { recursive: true, force: true })
  seed = undefined
}

/** The sink of a leader. */
export class FencedSink extends RecordingSink {
  constructor(readonly fence: number) {
    super()
  }
}

export const PHONE = '5215550001111'

export class Bench {
  readonly ana = new SignalPerson('5215550002222', '77000000000001', 'Ana')
  readonly sinks: RecordingSink[] = []
  private readonly providers: BaileysProvider[] = []

  private constructor(
    readonly whatsapp: WhatsAppWebDouble,
    readonly folder: string,
  ) {
    whatsapp.addPerson(this.ana)
  }

  static async start(): Promise<Bench> {
    return new Bench(await WhatsAppWebDouble.start(), await mkdtemp(join(tmpdir(), 'botmesh-baileys-')))
  }

  provider(options: Partial<BaileysOptions> = {}): BaileysProvider {
    const provider = new BaileysProvider({
      session: 'tienda',
      folder: this.folder,
      printQr: false,
      waWebSocketUrl: this.whatsapp.url,
      // The double has no history: waiting for it would hold the first messages back for 20 s.
      socketOptions: { shouldSyncHistoryMessage: () => false },
      ...options,
    })
    this.providers.push(provider)
    return provider
  }

  sink(): RecordingSink {
    const sink = new RecordingSink()
    this.sinks.push(sink)
    return sink
  }

  /** Starts a provider and pairs it as the account's phone would. */
  async pair(
    provider = this.provider(),
    sink = this.sink(),
    abort = new AbortController(),
  ): Promise<{ provider: BaileysProvider; sink: RecordingSink; abort: AbortController }> {
    await provider.start(sink, abort.signal)
    await sink.until(() => sink.pairings.length > 0)
    this.whatsapp.scan(sink.pairings[0]?.value ?? '', PHONE)
    await sink.until(() => isOpen(sink))
    return { provider, sink, abort }
  }

  /** A paired session on disk, with nothing connected. Pairs once a file of tests, then copies. */
  async paired(): Promise<void> {
    const folder = join(this.folder, 'tienda')
    if (seed === undefined) {
      const { provider } = await this.pair()
      await provider.stop()
      await this.gone()
      const account = this.whatsapp.paired[0]
      if (account === undefined) throw new Error('pairing failed')
      const kept = await mkdtemp(join(tmpdir(), 'botmesh-baileys-seed-'))
      await cp(folder, kept, { recursive: true })
      seed = { folder: kept, account }
      return
    }
    await cp(seed.folder, folder, { recursive: true })
    this.whatsapp.adopt(seed.account)
  }

  /** A paired and open connection. */
  async connected(
    provider = this.provider(),
  ): Promise<{ provider: BaileysProvider; sink: RecordingSink; abort: AbortController }> {
    await this.paired()
    const sink = this.sink()
    const abort = new AbortController()
    await provider.start(sink, abort.signal)
    await sink.until(isOpen)
    return { provider, sink, abort }
  }

  async gone(): Promise<void> {
    while (this.whatsapp.open > 0) await once(this.whatsapp, 'gone')
  }

  async stop(): Promise<void> {
    await Promise.all(this.providers.map((one) => one.stop()))
    await this.whatsapp.stop()
    await rm(this.folder, { recursive: true, force: true })
    const { errors } = this.whatsapp
    if (errors.length > 0) throw new AggregateError(errors, 'the double met what it does not know')
  }
}

export function isOpen(sink: RecordingSink): boolean {
  return sink.states.at(-1)?.status === 'open'
}

export function statuses(sink: RecordingSink): string[] {
  return sink.states.map((state) => (state.status === 'closed' ? `closed:${state.reason}` : state.status))
}
