/** Files of visitors: real sockets, two replicas on one store's log; what is refused, and what is left behind. */
import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, it } from '@jest/globals'
import { Bot, MemoryStore, ProviderError } from '@botmesh/core'
import { WebchatProvider, type ServerFrame } from '@botmesh/webchat'
import { ManualClock } from '@botmesh/core/testing'
import { RateLimit } from '../src/rate-limit.js'
import { safeFileName, Upload, Uploads } from '../src/uploads.js'
import { Page, replica, type Replica } from './support/replica.js'
import { SharedLog } from './support/shared-log.js'

const running: Replica[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()))
})

async function start(...args: Parameters<typeof replica>): Promise<Replica> {
  const one = await replica(...args)
  running.push(one)
  return one
}

const PDF = { name: 'factura.pdf', type: 'application/pdf' }

/** Announces a file and, once told to go, sends it in chunks of the size named. */
async function upload(page: Page, cid: string, bytes: Buffer, about: object = PDF): Promise<ServerFrame> {
  const gone = page.all('go').length
  page.push({ t: 'file', cid, size: bytes.length, ...about })
  const { chunkBytes } = await page.next('go', undefined, gone + 1)
  for (let at = 0; at < bytes.length; at += chunkBytes) page.socket.send(bytes.subarray(at, at + chunkBytes))
  return await Promise.race([
    page.next('ack', (frame) => frame.cid === cid),
    page.next('nack', (frame) => frame.cid === cid),
  ])
}

/** The answer to an announcement that is not welcome. */
async function refused(page: Page, cid: string, about: object): Promise<unknown> {
  page.push({ t: 'file', cid, ...PDF, ...about })
  const { t: _t, cid: _cid, ...rest } = await page.next('nack', (frame) => frame.cid === cid)
  return rest
}

describe('a file of a visitor', () => {
  it('issue 5: what one replica received is handed over as media, and another replica reads its content', async () => {
    const store = new MemoryStore()
    const [a, b] = await Promise.all([start({}, store.log), start({}, store.log)])
    const page = await Page.join(a.url, { lang: 'es' })
    const tab = await Page.join(b.url, { visitor: page.visitor })
    const bytes = randomBytes(2 * 1024 * 1024)
    expect(page.all('welcome')[0]?.files?.maxBytes).toBe(bytes.length)
    await upload(page, 'cid-00000001', bytes)
    const [message] = a.messages
    expect(message).toMatchObject({
      id: `${page.visitor.id}.cid-00000001`,
      chatId: page.visitor.id,
      type: 'media',
      body: '',
      lang: 'es',
      media: {
        kind: 'document',
        mimeType: 'application/pdf',
        fileName: 'factura.pdf',
        sizeBytes: bytes.length,
        id: expect.any(String),
      },
    })
    for (const { provider } of [a, b]) {
      const { data } = await provider.download(message?.media ?? {})
      expect(bytes.equals(data)).toBe(true)
    }
    const { file } = await tab.next('msg')
    expect(file).toEqual({ name: 'factura.pdf', sizeBytes: bytes.length, mimeType: 'application/pdf' })
    const reloaded = await Page.join(b.url, { visitor: page.visitor })
    expect((await reloaded.next('msg')).file?.name).toBe('factura.pdf')
  })

  it('B4: a handler gets it through the bot, and a conversation that asks for it', async () => {
    const provider = new WebchatProvider({ secret: 'a secret for tests only' })
    const bot = new Bot({ provider, store: new MemoryStore() })
    const seen: string[] = []
    let told = () => {}
    const done = new Promise<void>((resolve) => (told = resolve))
    bot.onMessage(async (ctx) => {
      const { data } = await provider.download(ctx.message.media ?? {})
      seen.push(Buffer.from(data).toString('utf8'))
      told()
    })
    const { createServer } = await import('node:http')
    const server = createServer(provider.middleware())
    provider.attach(server)
    await bot.start()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as import('node:net').AddressInfo
    const page = await Page.join(`ws://127.0.0.1:${port}/webchat/ws`)
    await upload(page, 'cid-00000001', Buffer.from('hola'), { name: 'a.txt', type: 'text/plain' })
    await done
    await bot.stop()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    expect(seen).toEqual(['hola'])
  })

  it('dedupe: a resend on another replica has the same id and content, and adds nothing to the store', async () => {
    const log = new SharedLog()
    const [a, b] = await Promise.all([start({}, log), start({}, log)])
    const bytes = randomBytes(100_000)
    const page = await Page.join(a.url)
    a.accept = async () => page.socket.terminate()
    page.push({ t: 'file', cid: 'cid-00000001', size: bytes.length, ...PDF })
    const { chunkBytes } = await page.next('go')
    for (let at = 0; at < bytes.length; at += chunkBytes)
      page.socket.send(bytes.subarray(at, at + chunkBytes))
    await page.closed
    const back = await Page.join(b.url, { visitor: page.visitor })
    const pieces = () =>
      [...log.entries].filter(([name]) => name.includes(':file:')).map(([, all]) => all.length)
    const before = pieces()
    expect(await upload(back, 'cid-00000001', bytes)).toMatchObject({ t: 'ack' })
    expect(pieces()).toEqual(before)
    expect(before).toEqual([Math.ceil(bytes.length / 32_768)])
    expect(b.messages[0]?.id).toBe(a.messages[0]?.id)
    expect(b.messages[0]?.media?.id).toBe(a.messages[0]?.media?.id)
  })

  it('a store that fails, or loses its reply: nothing is handed over until the whole content is in it', async () => {
    const log = new SharedLog()
    const chat = await start({}, log)
    const page = await Page.join(chat.url)
    const bytes = randomBytes(100_000)
    log.loseReplies = 1
    expect(await upload(page, 'cid-00000001', bytes)).toMatchObject({ t: 'nack', reason: 'busy' })
    expect(chat.messages).toEqual([])
    const acked = page.next('ack')
    void upload(page, 'cid-00000001', bytes)
    await acked
    const { data } = await chat.provider.download(chat.messages[0]?.media ?? {})
    expect(bytes.equals(data)).toBe(true)
  })

  it('keeps its place between the texts written before and after it', async () => {
    const chat = await start()
    const page = await Page.join(chat.url)
    page.say('before', 'cid-00000001')
    await upload(page, 'cid-00000002', Buffer.from('x'))
    page.say('after', 'cid-00000003')
    await page.next('ack', (frame) => frame.cid === 'cid-00000003')
    expect(chat.messages.map(({ body, type }) => body || type)).toEqual(['before', 'media', 'after'])
  })

  it('the page’s own upload, in chunks a few ahead of what is confirmed', async () => {
    const chat = await start({ maxFrameBytes: 1024 })
    const page = await Page.join(chat.url)
    const bytes = randomBytes(20_500)
    const pageSide = (await import(new URL('../page/upload.js', import.meta.url).href)) as {
      Upload: new (
        file: Blob,
        chunkBytes: number,
        push: (chunk: ArrayBuffer) => void,
        onLost: () => void,
      ) => { got(bytes: number): void }
    }
    page.push({ t: 'file', cid: 'cid-00000001', size: bytes.length, ...PDF })
    const { chunkBytes } = await page.next('go')
    let sent = 0
    let lead = 0
    const push = (chunk: ArrayBuffer) => {
      sent += chunk.byteLength
      lead = Math.max(lead, sent - (page.all('got').at(-1)?.bytes ?? 0))
      page.socket.send(chunk)
    }
    const file = new pageSide.Upload(new Blob([bytes]), chunkBytes, push, () => {})
    for (let n = 1; n <= Math.ceil(bytes.length / chunkBytes); n++) {
      file.got((await page.next('got', undefined, n)).bytes)
    }
    await page.next('ack')
    expect(lead).toBeLessThanOrEqual(4 * chunkBytes)
    const { data } = await chat.provider.download(chat.messages[0]?.media ?? {})
    expect(bytes.equals(data)).toBe(true)
  })
})

describe('files that the web chat refuses', () => {
  it('size, emptiness, type: told why, for good, and the socket goes on', async () => {
    const chat = await start({ files: { maxBytes: 1000, types: ['image/*', 'application/pdf'] } })
    const page = await Page.join(chat.url)
    expect(await refused(page, 'cid-00000001', { size: 1001 })).toEqual({
      reason: 'file-size',
      maxBytes: 1000,
    })
    expect(await refused(page, 'cid-00000002', { size: 0 })).toEqual({ reason: 'file-empty' })
    expect(await refused(page, 'cid-00000003', { size: 9, type: 'text/html' })).toEqual({
      reason: 'file-type',
    })
    expect(await refused(page, 'cid-00000004', { size: 9, type: '' })).toEqual({ reason: 'file-type' })
    const image = { name: 'a.svg', type: 'IMAGE/svg+xml' }
    expect(await upload(page, 'cid-00000005', Buffer.alloc(1000), image)).toMatchObject({ t: 'ack' })
    expect(chat.messages.map((one) => one.media?.kind)).toEqual(['document'])
  })

  it('switched off: the page is not offered them, and the capability is not claimed', async () => {
    const chat = await start({ files: false })
    const page = await Page.join(chat.url)
    expect(page.all('welcome')[0]).not.toHaveProperty('files')
    expect(await refused(page, 'cid-00000001', { size: 9 })).toEqual({ reason: 'files-off' })
    expect(chat.provider.capabilities.receives).not.toContain('media')
    expect(new WebchatProvider().capabilities.receives).toContain('media')
  })

  it('rate: of one visitor, and of all together', async () => {
    const chat = await start({ files: { rateLimit: { burst: 1, perMinute: 1 }, maxPerMinute: 2 } })
    const [one, two, three] = [
      await Page.join(chat.url),
      await Page.join(chat.url),
      await Page.join(chat.url),
    ]
    await upload(one, 'cid-00000001', Buffer.from('x'))
    const rate = { reason: 'rate', retryAfterMs: expect.any(Number) }
    expect(await refused(one, 'cid-00000002', { size: 1 })).toEqual(rate)
    await upload(two, 'cid-00000001', Buffer.from('x'))
    expect(await refused(three, 'cid-00000001', { size: 1 })).toEqual(rate)
    expect(chat.messages).toHaveLength(2)
  })

  it('count: uploads at a time; one that is aborted, or given up, frees its place and leaves nothing', async () => {
    const log = new SharedLog()
    const chat = await start({ files: { maxUploads: 1, rateLimit: { burst: 10 } } }, log)
    const [one, two] = [await Page.join(chat.url), await Page.join(chat.url)]
    one.push({ t: 'file', cid: 'cid-00000001', size: 40_000, ...PDF })
    await one.next('go')
    one.socket.send(Buffer.alloc(16_384))
    await one.next('got')
    const busy = { reason: 'busy', retryAfterMs: expect.any(Number) }
    expect(await refused(two, 'cid-00000001', { size: 1 })).toEqual(busy)
    one.socket.terminate()
    while (chat.provider.connections > 1) await new Promise((resolve) => setImmediate(resolve))
    two.push({ t: 'file', cid: 'cid-00000002', size: 40_000, ...PDF })
    await two.next('go')
    two.push({ t: 'file-stop', cid: 'cid-00000002' })
    expect(await upload(two, 'cid-00000003', Buffer.from('x'))).toMatchObject({ t: 'ack' })
    expect(chat.messages.map((message) => message.id)).toEqual([`${two.visitor.id}.cid-00000003`])
    expect([...log.entries.keys()].filter((name) => name.includes(':file:'))).toHaveLength(1)
  })

  it.each<[string, (page: Page) => void]>([
    ['a chunk that is too short', (page) => page.socket.send(Buffer.alloc(9))],
    ['an empty chunk', (page) => page.socket.send(Buffer.alloc(0))],
    ['a second file meanwhile', (page) => page.push({ t: 'file', cid: 'cid-00000002', size: 9, ...PDF })],
    ['a negative size', (page) => page.push({ t: 'file', cid: 'cid-00000002', size: -1, ...PDF })],
    [
      'a type that is none',
      (page) => page.push({ t: 'file', cid: 'cid-00000002', size: 1, name: 'a', type: 'a\r\nb' }),
    ],
  ])('malformed: %s closes the socket', async (_name, act) => {
    const chat = await start()
    const page = await Page.join(chat.url)
    page.push({ t: 'file', cid: 'cid-00000001', size: 40_000, ...PDF })
    await page.next('go')
    act(page)
    expect(await page.closed).toBe(4400)
    expect(chat.messages).toEqual([])
  })

  it('more bytes than announced are malformed, and the file itself was taken', async () => {
    const chat = await start()
    const page = await Page.join(chat.url)
    await upload(page, 'cid-00000001', Buffer.from('x'))
    page.socket.send(Buffer.from('more'))
    expect(await page.closed).toBe(4400)
    expect(chat.messages).toHaveLength(1)
  })

  it('wrong signature, or none: no file before a hello that holds', async () => {
    const chat = await start()
    const mine = await Page.join(chat.url)
    const forged = await Page.open(chat.url)
    forged.push({ t: 'hello', v: 1, visitor: { id: mine.visitor.id, sig: 'A'.repeat(43) } })
    forged.push({ t: 'file', cid: 'cid-00000001', size: 1, ...PDF })
    expect(await forged.closed).toBe(4401)
    const early = await Page.open(chat.url)
    early.push({ t: 'file', cid: 'cid-00000001', size: 1, ...PDF })
    expect(await early.closed).toBe(4400)
    expect(chat.messages).toEqual([])
  })

  it('download: gone, not ours, too large, or stopped is a ProviderError that says so', async () => {
    const chat = await start()
    const page = await Page.join(chat.url)
    await upload(page, 'cid-00000001', Buffer.from('content'))
    const media: { id?: string } = chat.messages[0]?.media ?? {}
    await expect(chat.provider.download(media, { maxBytes: 3 })).rejects.toThrow('7 bytes')
    for (const id of [
      undefined,
      '../../etc/passwd',
      `${media.id}x`,
      media.id?.replace('cid-00000001', 'cid-00000002'),
    ]) {
      const error = await chat.provider
        .download(id === undefined ? {} : { id })
        .catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(ProviderError)
      expect((error as ProviderError).details.final).toBe(true)
    }
    await chat.provider.stop()
    await expect(chat.provider.download(media)).rejects.toMatchObject({ details: { final: false } })
  })

  it.each<[object, string]>([
    [{ maxBytes: 0 }, '"files.maxBytes"'],
    [{ types: ['pdf'] }, '"files.types"'],
    [{ types: [] }, '"files.types"'],
    [{ keep: '1s' }, '"files.keep"'],
    [{ maxSize: 1 }, 'maxSize'],
  ])('option %j is a ConfigError', (files, text) => {
    expect(() => new WebchatProvider({ files })).toThrow(text)
  })
})

it('an upload that stands still, or never ends, is cut off; one that is whole is not', async () => {
  const clock = new ManualClock()
  const uploads = new Uploads(
    { maxBytes: 9999, types: ['a/b'], burst: 1, perMinute: 1, maxUploads: 9, maxPerMinute: 99, keepMs: 1 },
    10,
    clock,
  )
  const cut: string[] = []
  const begin = (cid: string, size: number): Upload => {
    const frame = { t: 'file', cid, name: 'a', type: 'a/b', size } as const
    const begun = uploads.begin(frame, new RateLimit(1, 1), () => cut.push(cid))
    if (!(begun instanceof Upload)) throw new Error(begun.reason)
    return begun
  }
  const [still, slow, whole] = [begin('still', 100), begin('slow', 9000), begin('whole', 5)]
  expect(whole.take(Buffer.alloc(5))).toBe(true)
  for (let n = 0; n < 11; n++) {
    expect(slow.take(Buffer.alloc(10))).toBe(true)
    await clock.advance(29_000)
    if (n === 1) expect(cut).toEqual(['still'])
  }
  expect(cut).toEqual(['still', 'slow'])
  for (const one of [still, slow, whole]) one.end()
})

it.each([
  ['../../etc/passwd', 'passwd'],
  ['D:\\album\\ana\\foto 1.JPG', 'foto 1.JPG'],
  ['..', 'file'],
  ['.htaccess', 'htaccess'],
  ['con.txt', '_con.txt'],
  ['a\u0000b\r\n"<c>.png', 'abc.png'],
  ['factura\u202Efdp.exe', 'facturafdp.exe'],
  ['', 'file'],
  ['niño\u0301.pdf ', 'niñó.pdf'],
])('file names are made safe: %j', (given, safe) => {
  expect(safeFileName(given)).toBe(safe)
})

it('a long file name keeps its ending', () => {
  const name = safeFileName(`${'😀'.repeat(200)}.pdf`)
  expect(Buffer.byteLength(name)).toBe(200)
  expect(name).toMatch(/^😀+\.pdf$/u)
})
