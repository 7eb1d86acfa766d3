/**
 * A double of WhatsApp Web for tests: a WebSocket server that completes the Noise handshake, pairs a device by the
 * scanned QR code, lets a paired one log in (replacing an older connection of the same device with 440, as the real
 * one does), answers the queries of a client that starts, delivers and receives end-to-end encrypted text, and
 * closes with any code. What is written to the device is delivered at each login until the device says "received".
 * It knows no history or app state.
 */
import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { BinaryNode, proto } from '@whiskeysockets/baileys'
import { WebSocketServer } from 'ws'
import { NoiseLink } from './noise-link.js'
import type { PublishedKeys, SignalPerson } from './signal-person.js'
import { PairingByCode } from './pairing-code.js'
import { lidOf, pairSuccess, seconds } from './pairing.js'
import { answerQuery, child } from './queries.js'

export interface DoubleAccount {
  phone: string
  device: number
  keys: PublishedKeys
}

interface Client {
  link: NoiseLink
  account?: DoubleAccount
  /** What an unpaired device said about its keys. */
  pairing?: PublishedKeys
  /** It has shown a code to type. */
  byCode?: PairingByCode
  phone?: string
}

export interface ReceivedMessage {
  id: string
  to: string
  message: proto.Message
}

interface DoubleEvents {
  socket: []
  pairing: []
  /** A device has made a code. */
  code: []
  login: [DoubleAccount]
  gone: []
  message: [ReceivedMessage]
  /** A client says that it has this message. */
  receipt: [string]
  /** Everything a client sends, for what has no event of its own. */
  node: [BinaryNode]
}

export class WhatsAppWebDouble extends EventEmitter<DoubleEvents> {
  /** Sockets ever accepted, and most logged in at once for one account. */
  accepted = 0
  mostLoggedIn = 0
  /** Most sockets open at once, and logins that threw out another connection of the same device. */
  mostOpen = 0
  replaced = 0
  logins = 0
  /** QR codes offered to devices that are not paired. */
  pairingsShown = 0
  /** What the double itself could not make sense of: empty at the end of a good test. */
  readonly errors: unknown[] = []
  readonly received: ReceivedMessage[] = []
  /** Take outgoing messages without acknowledging them, so that their fate stays unknown. */
  acknowledge = true
  /** Acknowledge outgoing messages with this error. */
  refuseSends: string | undefined
  /** Answer the next logins with this failure reason (401, 403, …) instead of success. */
  refuseLogins: number | undefined
  /** New connections are broken off. */
  down = false
  private readonly clients = new Set<Client>()
  private readonly accounts = new Map<string, DoubleAccount>()
  private readonly people = new Map<string, SignalPerson>()
  /** What was written to the account and not acknowledged by it. */
  readonly undelivered: BinaryNode[] = []
  /** Ids that a client could not decrypt and asked for again. */
  readonly retries: string[] = []
  private nextDevice = 1
  private nextId = 1

  private constructor(private readonly wss: WebSocketServer) {
    super()
    wss.on('connection', (socket) => {
      if (this.down) return socket.terminate()
      const client: Client = { link: new NoiseLink(socket) }
      this.accepted += 1
      this.clients.add(client)
      this.mostOpen = Math.max(this.mostOpen, this.clients.size)
      client.link.on('login', (payload) => this.onLogin(client, payload))
      client.link.on('node', (node) => void this.onNode(client, node).catch((e) => this.errors.push(e)))
      client.link.on('error', (error) => this.errors.push(error))
      socket.on('error', () => {})
      socket.on('close', () => {
        this.clients.delete(client)
        this.emit('gone')
      })
      this.emit('socket')
    })
  }

  static async start(): Promise<WhatsAppWebDouble> {
    const wss = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await new Promise((resolve) => wss.on('listening', resolve))
    return new WhatsAppWebDouble(wss)
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.wss.address() as AddressInfo).port}/ws/chat`
  }

  /** Connections that nobody is closing. */
  get open(): number {
    return [...this.clients].filter(({ link: { socket } }) => socket.readyState === socket.OPEN).length
  }

  async stop(): Promise<void> {
    for (const { link } of this.clients) link.socket.terminate()
    await new Promise((resolve) => this.wss.close(resolve))
  }

  addPerson(person: SignalPerson): void {
    this.people.set(person.phone, person)
    this.people.set(person.lid, person)
  }

  /** Those paired so far: another double can `adopt` them. */
  get paired(): readonly DoubleAccount[] {
    return [...this.accounts.values()]
  }

  /** Knows a device that was paired with another double. */
  adopt(account: DoubleAccount): void {
    this.accounts.set(`${account.phone}:${account.device}`, account)
    this.nextDevice = Math.max(this.nextDevice, account.device + 1)
  }

  /** What the owner's phone does with a QR code: the device is paired as one of `phone`'s, then restarted (515). */
  scan(qr: string, phone: string): void {
    // ref, noise key, identity key, secret; newer clients put a link before them.
    const [, , identity = '', secret = ''] = qr.slice(qr.indexOf('#') + 1).split(',')
    const client = [...this.clients].find(
      (one) => one.pairing !== undefined && Buffer.from(one.pairing.identity).toString('base64') === identity,
    )
    if (client?.pairing === undefined) throw new Error('no device shows this QR code')
    this.pair(client, phone, secret)
  }

  private pair(client: Client, phone: string, secret: string): void {
    if (client.pairing === undefined) throw new Error('no device to pair')
    const device = this.nextDevice++
    this.accounts.set(`${phone}:${device}`, { phone, device, keys: client.pairing })
    client.link.send(pairSuccess(this.id(), phone, device, client.pairing.identity, secret))
  }

  /** What the owner does with a code that the bot shows: types it on the phone. */
  async typeCode(code: string, phone: string): Promise<void> {
    let client = this.madeCode()
    // The code is shown as soon as the device has asked for it.
    for (; client?.byCode === undefined; client = this.madeCode()) await once(this, 'code')
    client.phone = phone
    client.link.send(await client.byCode.typed(code))
  }

  private madeCode(): Client | undefined {
    return [...this.clients].find((one) => one.byCode !== undefined)
  }

  /** `<stream:error>` to every client, then the end of its stream: 515, 428, 408, …; 440 as a conflict. */
  streamError(code: number): void {
    for (const client of this.clients) this.endStream(client, code)
  }

  /** The connection breaks without a word. */
  drop(): void {
    for (const { link } of this.clients) link.socket.terminate()
  }

  /** A person writes to the account; delivered at once or at the next login. @returns the message's id. */
  async write(
    person: SignalPerson,
    phone: string,
    content: string | proto.IMessage,
    attrs: Record<string, string> = {},
  ): Promise<string> {
    const account = [...this.accounts.values()].find((one) => one.phone === phone)
    if (account === undefined) throw new Error(`nobody is paired with ${phone}`)
    const message = typeof content === 'string' ? { conversation: content } : content
    const id = attrs['id'] ?? this.id().toUpperCase()
    const group = attrs['from']?.endsWith('@g.us') ? attrs['from'] : undefined
    const stanza: BinaryNode = {
      tag: 'message',
      attrs: {
        ...(group === undefined ? {} : { participant: person.jid }),
        from: person.jid,
        sender_lid: person.lidJid,
        type: 'text',
        t: seconds(),
        notify: person.name,
        id,
        ...attrs,
      },
      content:
        group === undefined
          ? [await person.encrypt(message, account.keys)]
          : await person.encryptForGroup(group, message, account.keys),
    }
    const client = [...this.clients].find((one) => one.account === account)
    this.undelivered.push(stanza)
    client?.link.send(stanza)
    return id
  }

  private onLogin(client: Client, payload: proto.ClientPayload): void {
    const pairing = payload.devicePairingData
    if (pairing) {
      client.pairing = {
        registrationId: Buffer.from(pairing.eRegid ?? []).readUInt32BE(),
        identity: pairing.eIdent ?? Buffer.alloc(0),
        signedKeyId: Buffer.from(pairing.eSkeyId ?? []).readUIntBE(0, 3),
        signedKey: pairing.eSkeyVal ?? Buffer.alloc(0),
        signature: pairing.eSkeySig ?? Buffer.alloc(0),
      }
      const refs = [1, 2, 3].map((n) => ({ tag: 'ref', attrs: {}, content: Buffer.from(`2@ref-${n}`) }))
      client.link.send({
        tag: 'iq',
        attrs: { from: 's.whatsapp.net', type: 'set', id: this.id(), xmlns: 'md' },
        content: [{ tag: 'pair-device', attrs: {}, content: refs }],
      })
      this.pairingsShown += 1
      this.emit('pairing')
      return
    }
    const account = this.accounts.get(`${String(payload.username)}:${payload.device ?? 0}`)
    const refused = account === undefined ? 401 : this.refuseLogins
    if (account === undefined || refused !== undefined) {
      client.link.send({ tag: 'failure', attrs: { reason: String(refused), location: 'test' } })
      client.link.socket.close()
      return
    }
    for (const other of this.clients) {
      if (other.account !== account) continue
      this.replaced += 1
      this.endStream(other, 440)
    }
    client.account = account
    this.logins += 1
    const loggedIn = [...this.clients].filter((one) => one.account === account).length
    this.mostLoggedIn = Math.max(this.mostLoggedIn, loggedIn)
    client.link.send({
      tag: 'success',
      attrs: { t: seconds(), lid: lidOf(account.phone, account.device), location: 'test' },
    })
    const waiting = [...this.undelivered]
    for (const stanza of waiting) {
      client.link.send({ ...stanza, attrs: { ...stanza.attrs, offline: '0' } })
    }
    client.link.send({
      tag: 'ib',
      attrs: { from: 's.whatsapp.net' },
      content: [{ tag: 'offline', attrs: { count: String(waiting.length) } }],
    })
    this.emit('login', account)
  }

  private async onNode(client: Client, node: BinaryNode): Promise<void> {
    this.emit('node', node)
    if (node.tag === 'iq' && node.attrs['type'] === 'result' && child(node, 'pair-device-sign')) {
      return this.endStream(client, 515)
    }
    const link = child(node, 'link_code_companion_reg')
    if (link?.attrs['stage'] === 'companion_hello') {
      client.byCode = new PairingByCode(link)
      return void this.emit('code')
    }
    if (link?.attrs['stage'] === 'companion_finish' && client.byCode !== undefined) {
      client.link.send(answerQuery(node, () => undefined, undefined))
      return this.pair(client, client.phone ?? '', client.byCode.secret(link))
    }
    if (node.tag === 'iq' && (node.attrs['type'] === 'get' || node.attrs['type'] === 'set')) {
      return client.link.send(this.answer(client, node))
    }
    if (node.tag === 'receipt' || (node.tag === 'ack' && node.attrs['class'] === 'message')) {
      this.onReceived(node)
    }
    if (node.tag === 'message') await this.onMessage(client, node)
  }

  private answer({ account }: Client, query: BinaryNode): BinaryNode {
    const members = [...new Set(this.people.values())].map((person) => person.jid)
    const own = account === undefined ? [] : [`${account.phone}@s.whatsapp.net`]
    return answerQuery(query, (user) => this.people.get(user), account, [...own, ...members])
  }

  /** "Received": only then it will not be delivered again. A request to encrypt it anew is none. */
  private onReceived({ attrs }: BinaryNode): void {
    if (attrs['type'] === 'retry') return void this.retries.push(attrs['id'] ?? '')
    const at = this.undelivered.findIndex((stanza) => stanza.attrs['id'] === attrs['id'])
    if (at < 0) return
    this.undelivered.splice(at, 1)
    this.emit('receipt', attrs['id'] ?? '')
  }

  private async onMessage(client: Client, node: BinaryNode): Promise<void> {
    const id = node.attrs['id'] ?? ''
    for (const to of childrenOf(child(node, 'participants'))) {
      const person = this.people.get((to.attrs['jid'] ?? '').split(/[:@]/)[0] ?? '')
      const enc = child(to, 'enc')
      if (person === undefined || enc === undefined) continue
      const received = { id, to: node.attrs['to'] ?? '', message: await person.decrypt(enc) }
      this.received.push(received)
      this.emit('message', received)
    }
    const enc = child(node, 'enc')
    if (enc?.attrs['type'] === 'skmsg') await this.onGroupMessage(id, node.attrs['to'] ?? '', enc)
    if (!this.acknowledge) return
    client.link.send({
      tag: 'ack',
      attrs: {
        class: 'message',
        id,
        from: node.attrs['to'] ?? '',
        t: seconds(),
        ...(this.refuseSends === undefined ? {} : { error: this.refuseSends }),
      },
    })
  }

  /** Every person is a member of every group; one of them reads it here. */
  private async onGroupMessage(id: string, to: string, enc: BinaryNode): Promise<void> {
    const [person] = this.people.values()
    if (person === undefined) return
    const received = { id, to, message: await person.decryptFromGroup(to, enc) }
    this.received.push(received)
    this.emit('message', received)
  }

  private endStream(client: Client, code: number): void {
    delete client.account
    const content: BinaryNode[] = code === 440 ? [{ tag: 'conflict', attrs: { type: 'replaced' } }] : []
    client.link.send({ tag: 'stream:error', attrs: code === 440 ? {} : { code: String(code) }, content })
    client.link.send({ tag: 'xmlstreamend', attrs: {} })
    client.link.socket.close()
  }

  private id(): string {
    return `double${String(this.nextId++).padStart(6, '0')}`
  }
}

function childrenOf(node: BinaryNode | undefined): BinaryNode[] {
  return Array.isArray(node?.content) ? node.content : []
}
