/** The test's side of `bot-replica.ts`: replicas that share a prefix, what is written to them and what they say. */
import { randomBytes } from 'node:crypto'
import {
  sharedRedisUrl,
  spawnReplica,
  waitFor,
  type NextOptions,
  type Replica,
  type ReplicaEvent,
} from '../../support/index.js'

const SCRIPT = new URL('./bot-replica.ts', import.meta.url)
const START_MS = 40_000

/** A prefix that no other test has. */
export function freshPrefix(): string {
  return `e2e-${randomBytes(6).toString('hex')}`
}

export interface CrewOptions {
  /** Default: the Redis that tests share. */
  redisUrl?: string
  /** Where turns and data are, if not there: options of a RedisStore. */
  place?: object
  /** Default 2000. */
  leaseMs?: number
  durability?: boolean
  /** More of the replicas' environment; see bot-replica.ts. */
  env?: Record<string, string>
}

/** One replica. */
export class BotReplica {
  constructor(
    readonly name: string,
    readonly process: Replica,
  ) {}

  /** The user `from` (default: the chat itself) writes; returns at once. */
  write(chat: string, body: string, id: string, from = chat): void {
    this.process.send({ do: 'receive', message: { id, chatId: chat, from, body } })
  }

  /** The next event of this name about that message. */
  of(event: string, id: string, options: NextOptions = {}): Promise<ReplicaEvent> {
    return this.process.next(event, { ...options, where: (one) => one['id'] === id })
  }

  next(event: string, options?: NextOptions): Promise<ReplicaEvent> {
    return this.process.next(event, options)
  }

  told(event: string): ReplicaEvent[] {
    return this.process.events.filter((one) => one.event === event)
  }

  async status(): Promise<ReplicaEvent> {
    this.process.send({ do: 'status' })
    return this.next('status')
  }
}

/** Replicas of one bot. */
export class Crew {
  readonly prefix = freshPrefix()
  readonly members: BotReplica[] = []
  private readonly gone = new Set<BotReplica>()
  private serial = 0

  constructor(private readonly options: CrewOptions = {}) {}

  get leaseMs(): number {
    return this.options.leaseMs ?? 2000
  }

  /** Starts one; ready to take messages when this resolves. */
  async join(name: string, env: Record<string, string> = {}): Promise<BotReplica> {
    const replica = await this.enter(name, env)
    await replica.next('started', { timeoutMs: START_MS })
    return replica
  }

  /** Starts two of an exclusive transport and waits until one of them leads. */
  async joinTwo(): Promise<{ leader: BotReplica; standby: BotReplica }> {
    const [a, b] = await Promise.all([this.join('a'), this.join('b')])
    const leader = await waitFor(() => [a, b].find((one) => one.told('leader').length > 0), {
      what: 'one leads',
    })
    await leader.next('leader')
    return { leader, standby: leader === a ? b : a }
  }

  /** Loads one that starts only on `replica.process.send({ do: 'start' })`: then within milliseconds. */
  async standBy(name: string, env: Record<string, string> = {}): Promise<BotReplica> {
    const replica = await this.enter(name, { GATED: '1', ...env })
    await replica.next('waiting', { timeoutMs: START_MS })
    return replica
  }

  /** A message id that was not used before. */
  id(): string {
    this.serial += 1
    return `m${this.serial}`
  }

  /** Every event of this name, of all members, by time. */
  told(event: string, where: (one: ReplicaEvent) => boolean = () => true): ReplicaEvent[] {
    const all: ReplicaEvent[] = this.members.flatMap((one) =>
      one.told(event).map((told) => ({ ...told, replica: one.name })),
    )
    return all.filter(where).sort((x, y) => Number(x['at']) - Number(y['at']))
  }

  /** What was said in a chat, by whichever replica. */
  said(chat: string): string[] {
    return this.told('sent', (one) => one['chat'] === chat).map((one) => String(one['text']))
  }

  /** Waits until `texts` were said in a chat, and checks that this is all so far. */
  async hears(chat: string, texts: readonly string[], timeoutMs = 15_000): Promise<void> {
    const enough = () => this.said(chat).length >= texts.length
    await waitFor(enough, { what: `${texts.length} replies in ${chat}`, timeoutMs }).catch(() => undefined)
    const said = this.said(chat)
    if (JSON.stringify(said) === JSON.stringify(texts)) return
    const logs = this.members.map(
      ({ name, process }) => `${name}: ${JSON.stringify(process.events.slice(-30))}`,
    )
    throw new Error(
      `Said in ${chat}: ${JSON.stringify(said)}, not ${JSON.stringify(texts)}.\n${logs.join('\n')}`,
    )
  }

  /** Ends all that still run, in order. @returns the exit codes that are not 0, which should be none. */
  async disband(): Promise<string[]> {
    const exits = await Promise.all(
      this.members.map(async (one) => {
        if (this.gone.has(one)) return null
        const { name, process } = one
        const { code, signal } = await process.terminate()
        return code === 0 ? null : `${name}: ${code ?? signal}\n${process.log}`
      }),
    )
    return exits.filter((one) => one !== null)
  }

  /** SIGKILL. */
  async kill(replica: BotReplica): Promise<void> {
    this.gone.add(replica)
    await replica.process.kill()
  }

  private async enter(name: string, env: Record<string, string>): Promise<BotReplica> {
    const { redisUrl, place, durability } = this.options
    const process = spawnReplica(SCRIPT, {
      REDIS_URL: redisUrl ?? (await sharedRedisUrl()),
      ...(place === undefined ? {} : { REDIS_PLACE: JSON.stringify(place) }),
      PREFIX: this.prefix,
      REPLICA_ID: name,
      LEASE_MS: String(this.leaseMs),
      ...(durability === true ? { DURABILITY: '1' } : {}),
      ...this.options.env,
      ...env,
    })
    const replica = new BotReplica(name, process)
    this.members.push(replica)
    return replica
  }
}
