/** One replica: life cycle, messages both ways, what is refused. Real sockets. */
import { once } from 'node:events'
import { request } from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'
import { afterEach, describe, expect, it } from '@jest/globals'
import { SendError } from '@botmesh/core'
import { WebchatProvider } from '@botmesh/webchat'
import { Page, replica, type Replica } from './support/replica.js'
import { SharedLog } from './support/shared-log.js'

const running: Replica[] = []
async function start(...args: Parameters<typeof replica>): Promise<Replica> {
  const one = await replica(...args)
  running.push(one)
  return one
}
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()))
})

describe('a web chat on one replica', () => {
  it('B4: hands a text over in neutral form and acknowledges it once it was taken', async () => {
    const chat = await start()
    const page = await Page.join(chat.url, { lang: 'es-MX' })
    page.say('hola', 'cid-00000001')
    await page.next('ack', (ack) => ack.cid === 'cid-00000001')
    expect(chat.messages).toEqual([
      {
        id: `${page.visitor.id}.cid-00000001`,
        chatId: page.visitor.id,
        from: page.visitor.id,
        type: 'text',
        body: 'hola',
        isGroup: false,
        timestamp: expect.any(Number),
        lang: 'es-MX',
        raw: { t: 'msg', cid: 'cid-00000001', text: 'hola' },
      },
    ])
    await page.next('typing')
  })

  it('B4: a chosen button has its id; a sent message with buttons reaches the page', async () => {
    const chat = await start()
    const page = await Page.join(chat.url)
    const { id } = await chat.provider.send(
      { chatId: page.visitor.id },
      { text: '¿Talla?', buttons: [{ id: 's', text: 'Small' }] },
    )
    const shown = await page.next('msg')
    expect(shown).toMatchObject({ id, from: 'bot', text: '¿Talla?', buttons: [{ id: 's', text: 'Small' }] })
    page.push({ t: 'msg', cid: 'cid-00000001', text: 'Small', buttonId: 's', replyTo: id })
    await page.next('ack')
    expect(chat.messages[0]).toMatchObject({ type: 'button', body: 'Small', buttonId: 's', quotedId: id })
  })

  it('keeps the order of arrival however long taking one message lasts', async () => {
    const chat = await start()
    let first = true
    chat.accept = async () => {
      if (first) {
        first = false
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
    }
    const page = await Page.join(chat.url)
    for (let n = 1; n <= 5; n++) page.say(`m${n}`, `cid-0000000${n}`)
    await page.next('ack', () => true, 5)
    expect(chat.messages.map((one) => one.body)).toEqual(['m1', 'm2', 'm3', 'm4', 'm5'])
  })

  it('a message that the runtime could not take is answered with nack, never lost silently', async () => {
    const chat = await start()
    chat.accept = async () => Promise.reject(new Error('no turn'))
    const page = await Page.join(chat.url)
    page.say('hola', 'cid-00000001')
    expect(await page.next('nack')).toMatchObject({ cid: 'cid-00000001', reason: 'busy' })
    chat.accept = async () => {}
    page.say('hola', 'cid-00000001')
    await page.next('ack')
    expect(page.texts('visitor')).toEqual(['hola'])
  })

  it('a page that reconnects while its message is being taken goes on in the same order, and is shown it once', async () => {
    const chat = await start()
    let takeFirst = () => {}
    let taking = () => {}
    const reached = new Promise<void>((resolve) => (taking = resolve))
    chat.accept = () => {
      taking()
      chat.accept = async () => {}
      return new Promise((resolve) => (takeFirst = resolve))
    }
    const page = await Page.join(chat.url)
    page.say('one', 'cid-00000001')
    await reached
    page.socket.terminate()
    await page.closed
    while (chat.provider.connections > 0) await new Promise((resolve) => setImmediate(resolve))
    const again = await Page.join(chat.url, { visitor: page.visitor, after: null })
    again.say('one', 'cid-00000001') // Its acknowledgement never came.
    again.say('two', 'cid-00000002')
    again.push({ t: 'ping' })
    await again.next('pong')
    takeFirst()
    await again.next('ack', (ack) => ack.cid === 'cid-00000002')
    expect(chat.messages.map((one) => one.body)).toEqual(['one', 'one', 'two'])
    expect(again.texts('visitor')).toEqual(['one', 'two'])
  })

  it('scenario 21: start twice is one set of sockets; stop is idempotent; start after stop works', async () => {
    const chat = await start()
    await chat.start()
    expect(chat.states).toEqual([{ status: 'connecting' }, { status: 'open' }])
    const page = await Page.join(chat.url)
    await Promise.all([chat.provider.stop(), chat.provider.stop()])
    expect(await page.closed).toBe(1001)
    expect(chat.provider.connections).toBe(0)
    await expect(chat.provider.send({ chatId: 'x' }, { text: 'late' })).rejects.toMatchObject({
      outcome: 'retryable',
    })
    await chat.start()
    await Page.join(chat.url)
    expect(chat.states.map((one) => one.status)).toEqual([
      'connecting',
      'open',
      'closed',
      'connecting',
      'open',
    ])
  })

  it('scenario 20: after the signal aborts no socket is accepted, and a start under an aborted signal opens none', async () => {
    const chat = await start()
    const page = await Page.join(chat.url)
    chat.abort.abort()
    await page.closed
    await chat.start()
    const [response] = (await once(
      new WebSocket(chat.url).on('error', () => {}),
      'unexpected-response',
    ).then(([, answer]) => [answer])) as [{ statusCode: number; headers: Record<string, string> }]
    expect(response.statusCode).toBe(503)
    expect(response.headers['retry-after']).toBe('2')
    expect(chat.provider.state.status).toBe('closed')
  })

  it('a stop that comes while start waits for an earlier stop ends in closed', async () => {
    const chat = await start()
    const stopping = chat.provider.stop()
    const starting = chat.start()
    await chat.provider.stop()
    await Promise.all([stopping, starting])
    expect(chat.provider.state.status).toBe('closed')
  })

  it('stop waits no longer than its grace for a page that does not answer the close', async () => {
    const chat = await start()
    const page = await Page.join(chat.url)
    page.socket.pause()
    await chat.provider.stop()
    expect(chat.provider.connections).toBe(0)
  })

  it('pings, and drops a page that no longer answers', async () => {
    const chat = await start({ heartbeat: '100ms' })
    const page = await Page.open(chat.url, { autoPong: false })
    page.push({ t: 'hello', v: 1 })
    expect(await page.closed).toBe(1006)
    const alive = await Page.join(chat.url)
    alive.push({ t: 'ping' })
    await alive.next('pong')
  })
})

describe('what the web chat refuses', () => {
  const joined = { t: 'hello', v: 1 }

  it.each([
    ['not JSON', '{oops'],
    ['no frame of the protocol', { t: 'dance' }],
    ['a message before hello', { t: 'msg', cid: 'cid-00000001', text: 'x' }],
    ['a hello with a visitor of the wrong shape', { ...joined, visitor: { id: '../../etc', sig: 'x' } }],
    ['an entry id of the wrong shape', { ...joined, after: '1\r\nFLUSHALL' }],
  ])('malformed frame: %s', async (_name, frame) => {
    const chat = await start()
    const page = await Page.open(chat.url)
    page.push(frame)
    expect(await page.closed).toBe(4400)
    expect(page.all('error')).toEqual([{ t: 'error', code: 'malformed' }])
    expect(chat.messages).toEqual([])
  })

  it('malformed frame: a second hello, a binary frame, an empty text', async () => {
    const chat = await start()
    for (const bad of [joined, Buffer.from('{}'), { t: 'msg', cid: 'cid-00000001', text: '  ' }]) {
      const page = await Page.join(chat.url)
      if (Buffer.isBuffer(bad)) page.socket.send(bad)
      else page.push(bad)
      expect(await page.closed).toBe(4400)
    }
    expect(chat.errors).toEqual([])
  })

  it('oversize: a frame over maxFrameBytes closes the socket, a text over maxTextLength is refused for good', async () => {
    const chat = await start({ maxFrameBytes: 1024, maxTextLength: 10 })
    const page = await Page.join(chat.url)
    page.say('eleven signs', 'cid-00000001')
    expect(await page.next('nack')).toEqual({ t: 'nack', cid: 'cid-00000001', reason: 'too-long' })
    page.say('x'.repeat(2000), 'cid-00000002')
    expect(await page.closed).toBe(1009)
    expect(chat.messages).toEqual([])
  })

  it('wrong signature: 4401, and the chat of the visitor named stays closed', async () => {
    const chat = await start()
    const mine = await Page.join(chat.url)
    await chat.provider.send({ chatId: mine.visitor.id }, { text: 'private' })
    const foreign = await Page.open(chat.url)
    foreign.push({ ...joined, visitor: { id: mine.visitor.id, sig: 'A'.repeat(43) } })
    expect(await foreign.closed).toBe(4401)
    expect(foreign.frames).toEqual([{ t: 'error', code: 'signature' }])
    const other = await start({ account: 'other' })
    const reused = await Page.open(other.url)
    reused.push({ ...joined, visitor: mine.visitor })
    expect(await reused.closed).toBe(4401)
  })

  it('a rotated secret still recognises, and signs anew', async () => {
    const old = await start({ secret: 'the old secret of the shop' })
    const before = await Page.join(old.url)
    const renewed = await start({ secret: ['the new secret of the shop', 'the old secret of the shop'] })
    const after = await Page.join(renewed.url, { visitor: before.visitor })
    expect(after.visitor.id).toBe(before.visitor.id)
    expect(after.visitor.sig).not.toBe(before.visitor.sig)
  })

  it('foreign origin: 403, the own and a listed one pass', async () => {
    const chat = await start()
    const listed = await start({ allowedOrigins: ['https://shop.example'] })
    const statusOf = async (url: string, origin: string) => {
      const socket = new WebSocket(url, { origin }).on('error', () => {})
      const opened = once(socket, 'open').then(() => 101)
      const refused = once(socket, 'unexpected-response').then(
        ([, answer]) => (answer as { statusCode: number }).statusCode,
      )
      refused.catch(() => {})
      opened.catch(() => {})
      const status = await Promise.race([opened, refused])
      socket.terminate()
      return status
    }
    expect(await statusOf(chat.url, 'https://evil.example')).toBe(403)
    expect(await statusOf(chat.url, 'null')).toBe(403)
    expect(await statusOf(chat.url, new URL(chat.url.replace('ws:', 'http:')).origin)).toBe(101)
    expect(await statusOf(listed.url, 'https://shop.example')).toBe(101)
    expect(await statusOf(listed.url, 'https://shop.example.evil.example')).toBe(403)
  })

  it('rate: over the burst a message is put off, not dropped; a flood of frames closes the socket', async () => {
    const chat = await start({ rateLimit: { burst: 2, perMinute: 600 } })
    const page = await Page.join(chat.url)
    for (let n = 1; n <= 3; n++) page.say(`m${n}`, `cid-0000000${n}`)
    const nack = await page.next('nack')
    expect(nack).toMatchObject({ cid: 'cid-00000003', reason: 'rate' })
    expect(nack.retryAfterMs).toBeGreaterThan(0)
    for (let n = 0; n < 80; n++) page.push({ t: 'ping' })
    expect(await page.closed).toBe(4429)
  })

  it('too many sockets: 503', async () => {
    const chat = await start({ maxConnections: 1 })
    await Page.join(chat.url)
    const second = new WebSocket(chat.url).on('error', () => {})
    const [, answer] = (await once(second, 'unexpected-response')) as [unknown, { statusCode: number }]
    expect(answer.statusCode).toBe(503)
  })

  it('content that a page must not show is final, before anything is written', async () => {
    const log = new SharedLog()
    const chat = await start({}, log)
    const send = (content: Parameters<WebchatProvider['send']>[1]) =>
      chat.provider.send({ chatId: 'v' }, content)
    for (const content of [
      {},
      { media: { kind: 'image', url: 'javascript:alert(1)' } } as const,
      { media: { kind: 'image' } } as const,
      { media: { kind: 'image', data: new Uint8Array(300_000) } } as const,
    ]) {
      const error = await send(content).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(SendError)
      expect((error as SendError).outcome).toBe('final')
    }
    expect(log.entries.size).toBe(0)
  })
})

describe('on somebody else’s HTTP server', () => {
  it('takes the upgrades of its own path only', async () => {
    const chat = await start()
    const base = chat.url.replace('/webchat/ws', '')
    const stranger = new WebSocket(`${base}/other`).on('error', () => {})
    const [, refused] = (await once(stranger, 'unexpected-response')) as [unknown, { statusCode: number }]
    expect(refused.statusCode).toBe(404)

    const others = new WebSocketServer({ noServer: true })
    chat.server.on('upgrade', (incoming, socket, head) => {
      if (incoming.url === '/other') others.handleUpgrade(incoming, socket, head, (one) => one.send('mine'))
    })
    const [greeting] = (await once(new WebSocket(`${base}/other`), 'message')) as [Buffer]
    expect(greeting.toString('utf8')).toBe('mine')
    await Page.join(chat.url)
    for (const client of others.clients) client.terminate()
  })

  it('two chats share a server; undoing an attachment leaves the other one', async () => {
    const chat = await start()
    const second = new WebchatProvider({ account: 'b', path: '/support', secret: 'another secret for tests' })
    const undo = second.attach(chat.server)
    await second.start(
      {
        message: async () => {},
        state: () => {},
        pairing: () => {},
        error: () => {},
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        clock: (await import('@botmesh/core')).systemClock,
        random: (await import('@botmesh/core')).systemRandom,
      },
      new AbortController().signal,
    )
    await (await Page.join(chat.url.replace('/webchat/', '/support/'))).leave()
    undo()
    undo()
    await (await Page.join(chat.url)).leave()
    await second.stop()
  })

  it('serves the page and its files, and nothing else', async () => {
    const chat = await start({ title: '<Tienda & Cía>' })
    const origin = chat.url.replace('ws:', 'http:').replace('/webchat/ws', '')
    const page = await fetch(`${origin}/webchat`)
    expect(page.url).toBe(`${origin}/webchat/`)
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
    const html = await page.text()
    expect(html).toContain('&#60;Tienda &#38; C')
    const files = [...html.matchAll(/(?:src|href)="\.\/([\w.]+)"/g)].map(([, file]) => file)
    expect(files).toEqual(['chat.css', 'chat.js'])
    for (const file of [...files, 'view.js', 'socket.js', 'upload.js', 'texts.js']) {
      const answer = await fetch(`${origin}/webchat/${file}`)
      expect([file, answer.status]).toEqual([file, 200])
      const etag = answer.headers.get('etag') ?? ''
      const again = await fetch(`${origin}/webchat/${file}`, { headers: { 'if-none-match': etag } })
      expect(again.status).toBe(304)
    }
    for (const path of ['/webchat/../package.json', '/webchat/constructor', '/other', '/webchatter']) {
      expect((await rawStatus(origin, path)).status).toBe(404)
    }
    expect((await fetch(`${origin}/webchat/`, { method: 'POST', body: 'x' })).status).toBe(405)
    expect(chat.provider.http({ method: 'GET', path: '/elsewhere' })).toBeNull()
  })
})

/** Without fetch's clean-up of dots in the path. */
async function rawStatus(origin: string, path: string): Promise<{ status: number | undefined }> {
  const { hostname, port } = new URL(origin)
  const sent = request({ hostname, port, path }).end()
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
  answer.resume()
  return { status: answer.statusCode }
}
