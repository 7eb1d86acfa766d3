/**
 * A double of a MongoDB server: one process' memory behind the wire protocol, presenting itself as a replica set of one.
 * It has the commands that the store's driver sends, users with SCRAM, unique ids, retryable writes that are recognised
 * when they come again, and errors on command. It can be killed and started again; its documents stay.
 */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Binary, type Document } from 'bson'
import { freePort } from '../../../tools/servers/port.mjs'
import { Commands } from './commands.js'
import { CommandError, type Documents } from './data.js'
import { ScramServer } from './scram.js'
import { Framing, encodeReply, type Request } from './wire.js'

export interface MongoUser {
  password: string
  rights: 'readWrite' | 'read'
}

export interface MongoDoubleOptions {
  /** Whoever is not one of them may nothing; absent: nobody has to say who they are. */
  users?: Record<string, MongoUser>
  /** The answer to each n-th command is lost with its connection, after it was carried out; what comes again is answered. */
  cutEvery?: number
}

/** What happens to the next command of a name. */
interface Planned {
  command: string
  /** Instead of the answer; with `applied` after the command was carried out. */
  error: { code: number; codeName: string; labels?: string[] } | 'cut'
  applied: boolean
}

const WRITES = new Set(['insert', 'update', 'delete', 'findAndModify', 'createIndexes'])
const FOR_ANYBODY = new Set([
  'hello',
  'ismaster',
  'isMaster',
  'ping',
  'saslStart',
  'saslContinue',
  'endSessions',
])

const RESTARTS = 50
const RESTART_PAUSE_MS = 20

interface Session {
  scram: ScramServer
}

export class MongoDouble {
  /** Names of the commands that arrived, in order. */
  readonly log: string[] = []
  private readonly commands = new Commands()
  private readonly sockets = new Set<Socket>()
  private readonly answered = new Map<string, Document>()
  private planned: Planned[] = []
  private server: Server | null = null
  private port = 0
  private carriedOut = 0

  constructor(private readonly options: MongoDoubleOptions = {}) {}

  /** On a port of its own, the same at every start. */
  async start(): Promise<void> {
    this.port ||= await freePort()
    for (let left = RESTARTS; ; left -= 1) {
      // One that was accepted in the moment of the end would keep it from ending.
      const server = createServer((socket) =>
        this.server === server ? this.serve(socket) : socket.destroy(),
      )
      this.server = server
      try {
        server.listen(this.port, '127.0.0.1')
        await once(server, 'listening')
        return
      } catch (error) {
        this.server = null
        // Connections of before may still hold the port.
        if (left === 0) throw error
        await delay(RESTART_PAUSE_MS)
      }
    }
  }

  /** Ends at once; what was under way is not answered. Idempotent. */
  async stop(): Promise<void> {
    const { server } = this
    this.server = null
    for (const socket of this.sockets) socket.destroy()
    if (!server) return
    server.close()
    await once(server, 'close')
  }

  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  /** `login`: `user:password@`, encoded. Clients talk to this address only, whatever proxy it is. */
  url(login = ''): string {
    return `mongodb://${login}127.0.0.1:${this.port}/?directConnection=true`
  }

  /** As an administrator would look at them. */
  documents(database: string, collection: string): Documents {
    return this.commands.documents(`${database}.${collection}`)
  }

  failNext(...planned: Planned[]): void {
    this.planned.push(...planned)
  }

  private serve(socket: Socket): void {
    const framing = new Framing()
    const session: Session = { scram: new ScramServer((user) => this.options.users?.[user]?.password) }
    this.sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('close', () => this.sockets.delete(socket))
    socket.on('error', () => socket.destroy()) // Resets are what tests do to it.
    socket.on('data', (data: Buffer) => {
      for (const request of framing.push(data)) this.answer(socket, session, request)
    })
  }

  private answer(socket: Socket, session: Session, request: Request): void {
    const name = Object.keys(request.command)[0] ?? ''
    this.log.push(name)
    const index = this.planned.findIndex((one) => one.command === name)
    const [plan] = index < 0 ? [] : this.planned.splice(index, 1)
    const result = plan && !plan.applied ? null : this.run(session, name, request.command)
    if (plan?.error === 'cut' || (result && this.isUnlucky(name, result.copy))) return void socket.destroy()
    const reply = plan ? failure(plan.error) : result?.reply
    if (reply) socket.write(encodeReply(request, reply))
  }

  private run(session: Session, name: string, command: Document): { reply: Document; copy: boolean } {
    try {
      this.authorize(session, name, command)
      const { lsid, txnNumber } = command as { lsid?: { id: Binary }; txnNumber?: number }
      // A write that the driver repeats since its answer was lost.
      const key = lsid && txnNumber !== undefined ? `${lsid.id.toString('hex')}/${String(txnNumber)}` : null
      const known = key === null ? undefined : this.answered.get(key)
      if (known) return { reply: known, copy: true }
      const reply = { ...this.carryOut(session, name, command), ok: 1 }
      if (key !== null) this.answered.set(key, reply)
      return { reply, copy: false }
    } catch (error) {
      const { code, codeName, message, more } =
        error instanceof CommandError
          ? error
          : new CommandError(8, 'UnknownError', `in the double: ${String(error)}`)
      return { reply: { ok: 0, code, codeName, errmsg: message, ...more }, copy: false }
    }
  }

  private isUnlucky(name: string, copy: boolean): boolean {
    const { cutEvery } = this.options
    if (cutEvery === undefined || copy || FOR_ANYBODY.has(name)) return false
    this.carriedOut += 1
    return this.carriedOut % cutEvery === 0
  }

  private authorize({ scram }: Session, name: string, command: Document): void {
    const { users } = this.options
    if (!users || FOR_ANYBODY.has(name)) return
    const rights = scram.user === null ? undefined : users[scram.user]?.rights
    if (rights === 'readWrite' || (rights === 'read' && !WRITES.has(name))) return
    const text =
      rights === undefined
        ? `Command ${name} requires authentication`
        : `not authorized on ${command['$db']} to execute command { ${name}: … }`
    throw new CommandError(13, 'Unauthorized', text)
  }

  private carryOut({ scram }: Session, name: string, command: Document): Document {
    switch (name) {
      case 'hello':
      case 'ismaster':
      case 'isMaster':
        return this.hello(command)
      case 'ping':
      case 'endSessions':
        return {}
      case 'saslStart':
      case 'saslContinue':
        return signIn(scram, command)
      default: {
        const known = this.commands.known as Record<string, ((command: Document) => Document) | undefined>
        const run = known[name]
        if (!run) throw new CommandError(59, 'CommandNotFound', `no such command: '${name}'`)
        return run(command)
      }
    }
  }

  private hello({ saslSupportedMechs }: Document): Document {
    const me = `127.0.0.1:${this.port}`
    return {
      ...{ ismaster: true, isWritablePrimary: true, helloOk: true, readOnly: false, secondary: false },
      ...{ setName: 'double', setVersion: 1, hosts: [me], me, primary: me },
      ...{ maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000 },
      ...{ localTime: new Date(), logicalSessionTimeoutMinutes: 30, minWireVersion: 0, maxWireVersion: 21 },
      ...(saslSupportedMechs === undefined ? {} : { saslSupportedMechs: ['SCRAM-SHA-256'] }),
    }
  }
}

function signIn(scram: ScramServer, { saslStart, payload }: Document): Document {
  const text = Buffer.from((payload as Binary).buffer).toString('utf8')
  const next = saslStart === undefined ? scram.finish(text) : scram.start(text)
  if (next === null) throw new CommandError(18, 'AuthenticationFailed', 'Authentication failed.')
  const done = saslStart === undefined
  return { conversationId: 1, done, payload: new Binary(Buffer.from(next, 'utf8')) }
}

function failure({ code, codeName, labels = [] }: Exclude<Planned['error'], 'cut'>): Document {
  return { ok: 0, code, codeName, errmsg: `planned: ${codeName}`, errorLabels: labels }
}
