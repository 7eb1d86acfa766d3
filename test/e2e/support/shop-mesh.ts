/** Replicas of the shop as processes behind the demo's balancer, on real Redis, with doubles of the platforms. */
import { startBalancer } from '../../../tools/demo/balancer.mjs'
import { newId, WhatsAppClient } from '../../../apps/tienda/test/whatsapp-client.js'
import { TelegramApiDouble } from '../../doubles/telegram-api.js'
import {
  onTestEnd,
  sharedRedisUrl,
  spawnReplica,
  startFaultProxy,
  waitFor,
  type FaultProxy,
  type Replica,
  type ReplicaEvent,
} from '../../support/index.js'
import { freshPrefix } from './bots.js'

const MAIN = new URL('../../../apps/tienda/src/main.ts', import.meta.url)
const START_MS = 60_000
/** A balancer gives up on a replica that does not answer; the platform delivers again. */
const ANSWER_MS = 1500
const TELEGRAM_SECRET = 'secret-of-the-tests'

export interface ShopReplica {
  name: string
  port: number
  process: Replica
  /** What lies between it and Redis. */
  redis: FaultProxy
}

export class ShopMesh {
  readonly replicas: ShopReplica[] = []
  readonly prefix = freshPrefix()
  /** How often the platform had to deliver again. */
  redelivered = 0

  private constructor(
    readonly leaseMs: number,
    readonly client: WhatsAppClient,
    readonly telegram: TelegramApiDouble,
    /** Between the replicas and the double of the Graph API. */
    readonly graph: FaultProxy,
    readonly balancer: Awaited<ReturnType<typeof startBalancer>>,
  ) {}

  static async open(names: readonly string[], options: { leaseMs?: number } = {}): Promise<ShopMesh> {
    const client = await WhatsAppClient.listen()
    const telegram = await new TelegramApiDouble().listen()
    const mesh = new ShopMesh(
      options.leaseMs ?? 2000,
      client,
      telegram,
      await startFaultProxy({ to: client.graph.url }),
      await startBalancer({ answerMs: ANSWER_MS }),
    )
    onTestEnd(async () => {
      await Promise.all([mesh.balancer.stop(), client.close(), telegram.close()])
    })
    await Promise.all(names.map((name) => mesh.join(name)))
    mesh.replicas.sort((x, y) => names.indexOf(x.name) - names.indexOf(y.name))
    return mesh
  }

  /** Starts a replica and puts it behind the balancer. */
  async join(name: string): Promise<ShopReplica> {
    const redis = await startFaultProxy({ to: await sharedRedisUrl() })
    const { settings } = this.client
    const process = spawnReplica(MAIN, {
      PORT: '0',
      HOST: '127.0.0.1',
      REDIS_URL: redis.url,
      PREFIX: this.prefix,
      REPLICA_ID: name,
      LEASE_MS: String(this.leaseMs),
      DURABILITY: '1',
      WEBCHAT_SECRET: 'a secret for tests only',
      WHATSAPP_PHONE_NUMBER_ID: settings.phoneNumberId,
      WHATSAPP_ACCESS_TOKEN: settings.accessToken,
      WHATSAPP_APP_SECRET: settings.appSecret,
      WHATSAPP_VERIFY_TOKEN: settings.verifyToken,
      WHATSAPP_GRAPH_URL: this.graph.url.replace(/\/$/, ''),
      TELEGRAM_TOKEN: this.telegram.token,
      TELEGRAM_WEBHOOK_SECRET: TELEGRAM_SECRET,
      TELEGRAM_API_ROOT: this.telegram.url,
    })
    const { port } = await process.next('listening', { timeoutMs: START_MS })
    const replica = { name, port: Number(port), process, redis }
    this.replicas.push(replica)
    this.balancer.add({ name, port: replica.port })
    return replica
  }

  /** Delivers through the balancer, again and again until it is acknowledged, as the platform does. */
  async deliver(chat: string, text: string, id = newId(chat)): Promise<string> {
    await waitFor(
      async () => {
        const status = await this.client.post(this.balancer.port, chat, text, id)
        if (status !== 200) this.redelivered += 1
        return status === 200
      },
      { what: `"${text}" is acknowledged`, timeoutMs: 20_000 },
    )
    return id
  }

  /** Says a line and waits for so many replies in all. @returns the last of them, and who gave it. */
  async say(chat: string, text: string, replies: number): Promise<{ reply: string; by: ShopReplica }> {
    const id = await this.deliver(chat, text)
    await waitFor(() => this.client.repliesTo(chat).length >= replies, {
      what: `${replies} replies to ${chat}`,
      timeoutMs: 20_000,
    })
    const handled = await waitFor(() => this.handled(id)[0], { what: `somebody says that it handled ${id}` })
    const by = this.replicas.find(({ name }) => name === handled['replica'])
    if (by === undefined) throw new Error(`${String(handled['replica'])} is no replica of this mesh.`)
    return { reply: this.client.repliesTo(chat)[replies - 1] ?? '', by }
  }

  /** Every `handled` event, or those of one message. */
  handled(id?: string): ReplicaEvent[] {
    return this.told('handled').filter((one) => id === undefined || one['messageId'] === id)
  }

  told(event: string): ReplicaEvent[] {
    return this.replicas.flatMap(({ process }) => process.events.filter((one) => one.event === event))
  }

  /** Posts a body as it is. @returns the status. */
  async post(path: string, body: string | Uint8Array, headers: Record<string, string>): Promise<number> {
    const response = await fetch(`${this.balancer.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
    await response.arrayBuffer()
    return response.status
  }

  async status(replica: ShopReplica, path: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${replica.port}${path}`)
    await response.arrayBuffer()
    return response.status
  }
}
