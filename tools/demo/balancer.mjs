/**
 * A small round-robin balancer for the demo and its tests: HTTP and WebSocket on one port, spread over the replicas
 * that accept connections. A replica that refuses the connection is passed over (nothing reached it); a request that
 * was accepted and never answered is not repeated - that is the sender's business, as with any real balancer.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Buffer } from 'node:buffer'
import { proxyFetch, proxyUpgrade } from 'httpxy'

const MAX_BODY_BYTES = 5 * 1024 * 1024

/**
 * @typedef {{ name: string, port: number }} Target
 * @typedef {{ method: string, url: string, target: string, status: number }} Route
 * @typedef {{ ring: Ring, answerMs: number, home: string | undefined, onRoute: ((route: Route) => void) | undefined }} Rules
 */

/**
 * @param {{ port?: number, host?: string, answerMs?: number, home?: string, onRoute?: (route: Route) => void }} [options]
 *   `answerMs`: how long a replica may take to answer a request, default 10 s; then the client gets 504. `home`: where
 *   whoever opens `/` is sent; else that is the replicas' business like any other path.
 * @returns {Promise<{ port: number, url: string, add(target: Target): void, remove(name: string): void, targets(): Target[], stop(): Promise<void> }>}
 */
export async function startBalancer(options = {}) {
  const { host = '127.0.0.1', answerMs = 10_000, home, onRoute } = options
  const ring = new Ring()
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set()
  const server = createServer((req, res) => {
    forward(req, res, { ring, answerMs, home, onRoute }).catch(() => {
      if (!res.headersSent) res.writeHead(502)
      res.end()
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (req, socket, head) => {
    socket.on('error', () => socket.destroy())
    const [target] = ring.inLine()
    if (target === undefined) return void socket.destroy()
    const place = { host: '127.0.0.1', port: target.port }
    proxyUpgrade(place, req, socket, head, { upgradeTimeout: answerMs }).catch(() => socket.destroy())
  })
  server.listen(options.port ?? 0, host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    ...{ port, url: `http://${host}:${port}` },
    add: (target) => ring.add(target),
    remove: (name) => ring.remove(name),
    targets: () => ring.targets,
    async stop() {
      if (!server.listening) return
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

/** Replicas in the order in which they are asked, one further each time. */
class Ring {
  /** @type {Target[]} */
  targets = []
  #turn = 0

  /** Every target once, beginning with the next in line. */
  inLine() {
    if (this.targets.length === 0) return []
    const start = this.#turn++ % this.targets.length
    return [...this.targets.slice(start), ...this.targets.slice(0, start)]
  }

  /** @param {Target} target replaces one of the same name */
  add(target) {
    this.targets = [...this.targets.filter((one) => one.name !== target.name), target]
  }

  /** @param {string} name */
  remove(name) {
    this.targets = this.targets.filter((one) => one.name !== name)
  }
}

/**
 * @param {import('node:http').IncomingMessage} req
 * @param {import('node:http').ServerResponse} res
 * @param {Rules} rules
 */
async function forward(req, res, { ring, answerMs, home, onRoute }) {
  const body = await readBody(req)
  if (body === null) return void res.writeHead(413).end()
  const { method = 'GET', url = '/' } = req
  if (home !== undefined && method === 'GET' && url === '/')
    return void res.writeHead(302, { location: home }).end()
  for (const target of ring.inLine()) {
    let reply
    try {
      reply = await proxyFetch(
        { host: '127.0.0.1', port: target.port },
        `http://${req.headers.host ?? 'localhost'}${url}`,
        {
          ...{ method, headers: forwardedHeaders(req), signal: AbortSignal.timeout(answerMs) },
          ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
        },
      )
    } catch (error) {
      if (wasRefused(error)) continue
      onRoute?.({ method, url, target: target.name, status: 504 })
      return void res.writeHead(504, { 'x-replica': target.name }).end()
    }
    onRoute?.({ method, url, target: target.name, status: reply.status })
    res.writeHead(reply.status, { ...Object.fromEntries(reply.headers), 'x-replica': target.name })
    return void res.end(Buffer.from(await reply.arrayBuffer()))
  }
  res.writeHead(503, { 'retry-after': '1' }).end('No replica is up.')
}

/** The whole body, or null if it is too large. @param {import('node:http').IncomingMessage} req */
async function readBody(req) {
  const parts = []
  let size = 0
  for await (const part of req) {
    size += part.length
    if (size > MAX_BODY_BYTES) return null
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** @param {import('node:http').IncomingMessage} req */
function forwardedHeaders(req) {
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    if (['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'expect'].includes(name)) continue
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one)
  }
  return headers
}

/** True only if nothing can have reached the replica. @param {unknown} error */
function wasRefused(error) {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && at.code === 'ECONNREFUSED') return true
  return false
}
