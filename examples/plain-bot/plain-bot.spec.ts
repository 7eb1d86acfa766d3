/** The bot without a framework: in one process, and as two real ones, the first of which stops in the middle. */
import { describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { MemoryStore } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import {
  freePort,
  onTestEnd,
  sharedRedisUrl,
  spawnReplica,
  waitFor,
  type Replica,
} from '../../test/support/index.js'
import { createBot } from './bot.js'

describe('examples: plain bot', () => {
  it('B3: takes an order, asks again, and can be cancelled', async () => {
    const provider = new FakeProvider()
    const bot = createBot({ provider, store: new MemoryStore() })
    await bot.start()
    const say = async (body: string) => {
      await provider.receive(body)
      return (await provider.nextSent()).text
    }
    expect(await say('hello')).toBe('Write "order".')
    expect(await say('buy something')).toBe('Which size?')
    expect(await say('XXL')).toBe('S, M or L, please.')
    expect(await say('M')).toBe('Where shall it go?')
    expect(await say('Main Street 1')).toBe('One shirt, M, to Main Street 1. On its way!')
    expect(await say('order')).toBe('Which size?')
    expect(await say('/cancel')).toBe('Forgotten.')
    expect(await say('/cancel')).toBe('Nothing to cancel.')
    await bot.stop()
  })

  it('N5, K1: as processes: the first one stops in the middle of an order, the second one goes on', async () => {
    const [a, b] = [await replica('a'), await replica('b')]
    const page = await openPage(a.port)
    expect(await page.say('order')).toBe('Which size?')
    await Promise.all([a.process.terminate(), page.closed])
    const again = await openPage(b.port, page)
    expect(await again.say('L')).toBe('Where shall it go?')
    again.socket.close()
    expect(await b.process.terminate()).toEqual({ code: 0, signal: null })
  })

  it('N5: as a process that still waits for Redis: SIGTERM ends it in order', async () => {
    const process = spawn(`redis://127.0.0.1:${await freePort()}`, await freePort())
    await waitFor(() => process.log.includes('does not answer yet'), { what: 'it waits for Redis' })
    expect(await process.terminate()).toEqual({ code: 0, signal: null })
    expect(process.log).not.toContain('CoordinationUnavailableError')
  })
})

async function replica(name: string): Promise<{ process: Replica; port: number }> {
  const port = await freePort()
  const process = spawn(await sharedRedisUrl(), port)
  await waitFor(() => process.log.includes('/webchat/'), { what: `replica ${name} listens` })
  return { process, port }
}

function spawn(redisUrl: string, port: number): Replica {
  const process = spawnReplica(new URL('./main.ts', import.meta.url), {
    REDIS_URL: redisUrl,
    PREFIX: `example-${globalThis.process.pid}`,
    WEBCHAT_SECRET: 'a secret of at least sixteen characters',
    PORT: String(port),
  })
  onTestEnd(async () => void (await process.kill()))
  return process
}

interface Frame {
  t: string
  seq?: string
  from?: string
  text?: string
  visitor?: { id: string; sig: string }
}

/** A visitor's browser, as far as this test needs one. */
async function openPage(port: number, before?: { visitor: unknown; last(): string | null }) {
  const socket = new WebSocket(`ws://localhost:${port}/webchat/ws`, { origin: `http://localhost:${port}` })
  const frames: Frame[] = []
  socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString()) as Frame))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await new Promise<void>((resolve, reject) => socket.once('open', resolve).once('error', reject))
  socket.send(JSON.stringify({ t: 'hello', v: 1, visitor: before?.visitor, after: before?.last() }))
  const welcome = await waitFor(() => frames.find(({ t }) => t === 'welcome'), { what: 'welcome' })
  const last = () => frames.findLast(({ seq }) => seq !== undefined)?.seq ?? null
  const say = async (text: string): Promise<unknown> => {
    const read = frames.length
    socket.send(JSON.stringify({ t: 'msg', cid: `cid-${port}-${text}-00000000`, text }))
    const answer = await waitFor(
      () => frames.slice(read).find((frame) => frame.t === 'msg' && frame.from !== 'visitor'),
      { what: `an answer to "${text}"` },
    )
    return answer.text
  }
  return { socket, closed, visitor: welcome.visitor, last, say }
}
