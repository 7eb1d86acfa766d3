/**
 * A line to PostgreSQL on which prepared statements are never there when they are used, as behind a pooler that hands
 * out connections by the transaction: what is prepared gets another name, so that the server refuses the use of it.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface Pooler {
  readonly url: string
  /** Statements that lost their names so far. */
  readonly refused: number
  stop(): Promise<void>
}

const NAME = Buffer.from('botmesh_')
/** A Parse message: its letter and four bytes of length stand before the name. */
const PARSE = 'P'.charCodeAt(0)

export async function startPooler(serverPort: number): Promise<Pooler> {
  let refused = 0
  const rename = (data: Buffer): Buffer => {
    for (let at = data.indexOf(NAME); at >= 0; at = data.indexOf(NAME, at + 1)) {
      if (data[at - 5] !== PARSE) continue
      data.write('x', at)
      refused += 1
    }
    return data
  }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(serverPort, '127.0.0.1')
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('data', (data: Buffer) => to.write(from === client ? rename(data) : data))
      // The other side ends as well, whatever the reason.
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    get refused() {
      return refused
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
