/** What a bot says in one chat arrives in the order in which it said it, though nobody waited for each (B1, L2, T4). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { LeaseLostError, type MessageContext } from '../../src/index.js'
import { ManualClock } from '../../src/testing/index.js'
import { LONGEST_IN_LINE_MS, SendLines } from '../../src/runtime/send-lines.js'
import { Mesh, type Replica } from './support/mesh.js'

const FILE = { media: { kind: 'image' as const, data: Buffer.from('a photo'), caption: 'photo' } }

let mesh: Mesh
afterEach(() => mesh?.stop())

/** The next send of a replica takes until `finish`. */
function slowSend({ provider }: Replica, error?: Error): { begun: () => boolean; finish: () => void } {
  let begun = false
  let finish: () => void = () => undefined
  const finished = new Promise<void>((resolve) => (finish = resolve))
  provider.failNextSends(async () => {
    begun = true
    await finished
    return error
  })
  return { begun: () => begun, finish: () => finish() }
}

describe.each([false, true])('sends that nobody waits for, durability %s', (durability) => {
  const failures: unknown[] = []
  const keep = (error: unknown) => void failures.push(error)

  async function replica(answer: (ctx: MessageContext) => unknown): Promise<Replica> {
    failures.length = 0
    mesh = new Mesh((bot) => bot.onMessage(async (ctx) => void (await answer(ctx))), {
      config: { durability },
    })
    return mesh.add()
  }

  /** A photo, and a text after it. */
  function both(ctx: MessageContext): void {
    if (ctx.body === 'photo, please') ctx.reply(FILE).catch(keep)
    ctx.reply(`answer to ${ctx.body}`).catch(keep)
  }

  it('B1: a text does not overtake the file before it; other chats do', async () => {
    const one = await replica(both)
    const photo = slowSend(one)
    await mesh.tell(one, 'photo, please')
    await mesh.until(photo.begun)
    await mesh.tell(one, 'hello', { chatId: '7' })
    await mesh.until(() => mesh.said.length === 1)
    photo.finish()
    await mesh.until(() => mesh.said.length === 3)
    expect(mesh.said).toEqual(['answer to hello', 'photo', 'answer to photo, please'])
    expect(failures).toEqual([])
  })

  it('B1: a file that could not be sent does not keep the text after it', async () => {
    const one = await replica(both)
    const photo = slowSend(one, new Error('too large'))
    await mesh.tell(one, 'photo, please')
    await mesh.until(photo.begun)
    photo.finish()
    await mesh.until(() => mesh.said.length === 1)
    expect(mesh.said).toEqual(['answer to photo, please'])
    expect(failures).toMatchObject([{ message: 'too large' }])
  })

  it('B1: nor does one that takes so long that the turn ends meanwhile; what is said in the next comes after it', async () => {
    const one = await replica(both)
    const photo = slowSend(one)
    await mesh.tell(one, 'photo, please')
    await mesh.until(photo.begun)
    await mesh.tell(one, 'next')
    await mesh.clock.advance(15_000)
    expect(mesh.payloads(one, 'message:handled')).toHaveLength(1)
    expect(mesh.said).toEqual([])
    photo.finish()
    await mesh.until(() => mesh.said.length === 3)
    expect(mesh.said).toEqual(['photo', 'answer to photo, please', 'answer to next'])
    expect(failures).toEqual([])
  })

  it('L2: what waits is not sent once the turn is lost', async () => {
    const one = await replica(both)
    const photo = slowSend(one)
    await mesh.tell(one, 'photo, please')
    await mesh.until(photo.begun)
    one.clock.pause()
    await mesh.clock.advance(60_000)
    one.clock.resume()
    await mesh.until(() => failures.length === 1)
    expect(failures[0]).toBeInstanceOf(LeaseLostError)
    photo.finish()
    await mesh.settle()
    expect(mesh.said.filter((text) => text !== 'photo')).toEqual([])
  })
})

it('D2: what waits for a send before it is not marked as begun: if its replica dies now, it was never tried', async () => {
  mesh = new Mesh(
    (bot) => bot.onMessage(async (ctx) => void (await Promise.all([ctx.reply(FILE), ctx.reply('after it')]))),
    { config: { durability: true } },
  )
  const one = await mesh.add()
  const photo = slowSend(one)
  await mesh.tell(one, 'photo, please')
  await mesh.until(photo.begun)
  const key = 'fake%3Atest/100'
  expect(await mesh.store.outbox.entries(key)).toMatchObject([{ status: 'intended', content: { media: {} } }])
  photo.finish()
  await mesh.until(() => mesh.payloads(one, 'message:handled').length === 1)
  expect([mesh.said, await mesh.store.outbox.entries(key)]).toEqual([['photo', 'after it'], []])
})

it('D2: what still waits when its attempt has failed is left to the next attempt, and sent once', async () => {
  const failures: unknown[] = []
  let attempts = 0
  mesh = new Mesh(
    (bot) =>
      bot.onMessage((ctx) => {
        for (const content of [FILE, 'after it'])
          ctx.reply(content).catch((error) => void failures.push(error))
        if (++attempts === 1) throw new Error('down')
      }),
    { config: { durability: { retryMs: 100 } } },
  )
  const one = await mesh.add()
  const photo = slowSend(one)
  await mesh.tell(one, 'photo, please')
  await mesh.until(() => attempts === 2, 30_000)
  photo.finish()
  await mesh.until(() => mesh.payloads(one, 'message:handled').length === 1)
  expect(mesh.said).toEqual(['photo', 'after it'])
  expect(failures).toMatchObject([{ code: 'LEASE_LOST', reason: 'settled' }])
})

describe('the lines of sends', () => {
  it('B1: one that never ends is waited for, but not for ever; nothing is kept of a chat that is silent', async () => {
    const clock = new ManualClock()
    const lines = new SendLines(clock)
    const sent: string[] = []
    const say = (text: string) => lines.run('1', undefined, async () => void sent.push(text))
    void lines.run('1', undefined, () => new Promise(() => undefined))
    const [two, three] = [say('two'), say('three')]
    await clock.advance(LONGEST_IN_LINE_MS - 1)
    expect(sent).toEqual([])
    await clock.advance(1)
    await Promise.all([two, three])
    await say('four')
    expect(sent).toEqual(['two', 'three', 'four'])
    expect(clock.timers).toBe(0)
  })

  it('L2: who gives up leaves at once, in its place nobody overtakes, and what it had begun is not waited for', async () => {
    const lines = new SendLines(new ManualClock())
    const sent: string[] = []
    const say = (text: string, signal?: AbortSignal) =>
      lines.run('1', signal, async () => void sent.push(text))
    const [first, second] = [new AbortController(), new AbortController()]
    void lines.run('1', first.signal, () => new Promise(() => undefined))
    const two = say('two', second.signal)
    const three = say('three')
    second.abort(new Error('lost'))
    await expect(two).rejects.toThrow('lost')
    expect(sent).toEqual([])
    first.abort(new Error('lost'))
    await three
    expect(sent).toEqual(['three'])
  })
})
