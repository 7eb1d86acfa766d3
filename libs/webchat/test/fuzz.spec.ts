/** Hostile pages: damaged frames, chunks, upgrades and requests over real sockets. Jest fails on an unhandled rejection. */
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { damageBody } from '../../../test/doubles/damage-body.js'
import { Page, replica, type Replica } from './support/replica.js'

const FRAMES = [
  '{"t":"hello","v":1,"lang":"es","after":"1-2"}',
  '{"t":"msg","cid":"message-1","text":"hola","replyTo":"x"}',
  '{"t":"file","cid":"message-2","name":"a.pdf","type":"application/pdf","size":9}',
  '{"t":"file-stop","cid":"message-2"}',
  '{"t":"ping"}',
]
/** Of the protocol (4400 and up), of WebSocket itself (1002, 1007, 1009), or the page left. */
const CLOSES = new Set([1000, 1002, 1005, 1007, 1009, 4400, 4401, 4408, 4426, 4429])

let chat: Replica
beforeEach(async () => {
  chat = await replica({ maxFrameBytes: 2048, rateLimit: { burst: 10_000, perMinute: 100_000 } })
})
afterEach(() => chat.close())

describe('scenario 25 in kind: a web chat under hostile pages', () => {
  it('damaged frames and chunks: each socket goes on or is closed with a reason, and others are served', async () => {
    const random = new SeededRandom(seedOfRun())
    const closes = new Map<number, number>()
    for (let round = 0; round < 120; round += 1) {
      const page = random.next() < 0.7 ? await Page.join(chat.url) : await Page.open(chat.url)
      for (let frames = 1 + random.int(8); frames > 0; frames -= 1) {
        const good = random.pick(FRAMES)
        const text = random.next() < 0.3 ? good : damageBody(good, random)
        page.socket.send(random.next() < 0.2 ? Buffer.from(text) : text)
      }
      page.socket.close()
      const code = await page.closed
      closes.set(code, (closes.get(code) ?? 0) + 1)
      if (!CLOSES.has(code)) throw new Error(`SEED=${random.seed}, round ${round}: closed with ${code}`)
    }
    expect(closes.get(4400)).toBeGreaterThan(0)
    expect(chat.messages.every(({ body, type }) => type !== 'text' || body.trim() !== '')).toBe(true)
    expect(chat.errors).toEqual([])
    const page = await Page.join(chat.url)
    page.say('hola', 'cid-00000001')
    await page.next('ack')
  })

  it('damaged bytes under a WebSocket, upgrades and requests: refused with 4xx or cut, and others are served', async () => {
    const random = new SeededRandom(seedOfRun())
    const { host } = new URL(chat.url)
    const upgrade = [
      `GET ${chat.provider.path}/ws HTTP/1.1`,
      `Host: ${host}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ]
    const page = [`GET ${chat.provider.path}/ HTTP/1.1`, `Host: ${host}`, 'Connection: close']
    const statuses = new Set<number>()
    for (let round = 0; round < 300; round += 1) {
      const head = Buffer.from(`${(random.next() < 0.7 ? upgrade : page).join('\r\n')}\r\n\r\n`)
      for (let hits = random.int(4); hits > 0; hits -= 1) head[random.int(head.length)] = random.int(256)
      const rest = Buffer.from(Array.from({ length: random.int(60) }, () => random.int(256)))
      const status = await exchange(Number(new URL(chat.url).port), Buffer.concat([head, rest]))
      if (status >= 500) throw new Error(`SEED=${random.seed}, round ${round}: ${status}`)
      statuses.add(status)
    }
    expect(statuses.has(101)).toBe(true)
    expect([...statuses].some((status) => status >= 400)).toBe(true)
    expect(chat.errors).toEqual([])
    const good = await Page.join(chat.url)
    good.say('hola', 'cid-00000001')
    await good.next('ack')
  })
})

/** Writes these bytes and hangs up once there is an answer, or none comes. @returns its status, 0 without an answer. */
function exchange(port: number, bytes: Buffer): Promise<number> {
  return new Promise((resolve) => {
    let said = ''
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes))
    socket.on('data', (data) => {
      said += data.toString('latin1')
      if (said.includes('\r\n')) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(said)?.[1] ?? 0)))
  })
}
