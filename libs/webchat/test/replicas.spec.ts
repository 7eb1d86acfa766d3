/** Two replicas, one log: whoever sends, the visitor gets it once, wherever their socket is. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Page, replica, type Replica } from './support/replica.js'
import { SharedLog } from './support/shared-log.js'

const running: Replica[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()))
})

async function two(log = new SharedLog()): Promise<{ a: Replica; b: Replica; log: SharedLog }> {
  const [a, b] = await Promise.all([replica({}, log), replica({}, log)])
  running.push(a, b)
  return { a, b, log }
}

describe('a web chat on two replicas', () => {
  it('P2: what another replica sends reaches every socket of the visitor, in order, and nobody else', async () => {
    const { a, b } = await two()
    const first = await Page.join(a.url)
    const tab = await Page.join(b.url, { visitor: first.visitor })
    const stranger = await Page.join(a.url)
    for (let n = 1; n <= 20; n++) {
      await (n % 2 === 0 ? a : b).provider.send({ chatId: first.visitor.id }, { text: `r${n}` })
    }
    const expected = Array.from({ length: 20 }, (_, n) => `r${n + 1}`)
    for (const page of [first, tab]) {
      await page.next('msg', (one) => one.text === 'r20')
      expect(page.texts('bot')).toEqual(expected)
    }
    expect(stranger.all('msg')).toEqual([])
  })

  it('reconnection on another replica: what was missed comes once, after the last entry seen', async () => {
    const { a, b, log } = await two()
    const page = await Page.join(a.url)
    const { visitor } = page
    await a.provider.send({ chatId: visitor.id }, { text: 'one' })
    const { seq } = await page.next('msg')
    await a.close()
    running.splice(running.indexOf(a), 1)
    expect(await page.closed).toBe(1001)
    await b.provider.send({ chatId: visitor.id }, { text: 'two' })
    await b.provider.send({ chatId: visitor.id }, { text: 'three' })
    const back = await Page.join(b.url, { visitor, after: seq })
    expect(back.all('welcome')).toMatchObject([{ known: true }])
    await back.next('msg', (one) => one.text === 'three')
    await b.provider.send({ chatId: visitor.id }, { text: 'four' })
    await back.next('msg', (one) => one.text === 'four')
    expect(back.texts('bot')).toEqual(['two', 'three', 'four'])
    // A reload has seen nothing: everything kept comes again.
    const reloaded = await Page.join(b.url, { visitor })
    await reloaded.next('msg', (one) => one.text === 'four')
    expect(reloaded.texts('bot')).toEqual(['one', 'two', 'three', 'four'])
    await Promise.all([back.leave(), reloaded.leave()])
    await b.provider.stop()
    expect(log.subscriptions).toBe(0)
  })

  it('a lost ack: the resend on another replica has the same id, for the runtime to deduplicate', async () => {
    const { a, b } = await two()
    const page = await Page.join(a.url)
    // The socket dies after the message was taken and before its acknowledgement is written.
    a.accept = async () => page.socket.terminate()
    page.say('hola', 'cid-00000001')
    await page.closed
    expect(page.all('ack')).toEqual([])
    const back = await Page.join(b.url, { visitor: page.visitor })
    back.say('hola', 'cid-00000001')
    await back.next('ack')
    expect(b.messages.map((one) => one.id)).toEqual(a.messages.map((one) => one.id))
    // Echoes may double; their id is the same, so that a page shows one.
    expect(new Set(back.all('msg').map((one) => one.id))).toEqual(
      new Set([`${page.visitor.id}.cid-00000001`]),
    )
  })

  it('the echo stands before the answer in every tab, also if the answer is immediate', async () => {
    const { a, b } = await two()
    const page = await Page.join(a.url)
    const tab = await Page.join(b.url, { visitor: page.visitor })
    a.accept = async (message) => {
      await b.provider.send({ chatId: message.chatId }, { text: `you said ${message.body}` })
    }
    page.say('uno', 'cid-00000001')
    page.say('dos', 'cid-00000002')
    await tab.next('msg', (one) => one.text === 'you said dos')
    expect(tab.all('msg').map((one) => one.text)).toEqual(['uno', 'you said uno', 'dos', 'you said dos'])
  })

  it('lost hints only make it slower: the heartbeat polls', async () => {
    const { a, b, log } = await two()
    const page = await Page.join(a.url)
    log.hints = false
    await b.provider.send({ chatId: page.visitor.id }, { text: 'quiet' })
    await page.next('msg', (one) => one.text === 'quiet')
    expect(page.texts('bot')).toEqual(['quiet'])
  })

  it('a log that fails: the message is not acknowledged, a send is uncertain, reading is tried again', async () => {
    const { a, log } = await two()
    const page = await Page.join(a.url)
    log.failAppends = 1
    page.say('hola', 'cid-00000001')
    expect(await page.next('nack')).toMatchObject({ reason: 'busy' })
    expect(a.messages).toEqual([])

    log.loseReplies = 1
    const send = () =>
      a.provider.send({ chatId: page.visitor.id }, { text: 'once' }, { idempotencyKey: 'k1' })
    await expect(send()).rejects.toMatchObject({ outcome: 'uncertain' })
    expect(await send()).toEqual({ id: 'k1' })
    // Two copies in the log, one id: a page shows one.
    await page.next('msg', (one) => one.id === 'k1', 2)

    log.failReads = 1
    await a.provider.send({ chatId: page.visitor.id }, { text: 'after a failed read' })
    await page.next('msg', (one) => one.text === 'after a failed read')
  })

  it('an entry id of another kind of log: everything kept is read', async () => {
    const { a, log } = await two()
    const page = await Page.join(a.url)
    await a.provider.send({ chatId: page.visitor.id }, { text: 'kept' })
    await page.next('msg')
    log.failReads = 1
    const back = await Page.join(a.url, { visitor: page.visitor, after: '1699999999999-0' })
    await back.next('msg', (one) => one.text === 'kept')
  })

  it('a send under an aborted signal writes nothing', async () => {
    const { a, log } = await two()
    const lost = AbortSignal.abort(new Error('the turn was lost'))
    await expect(a.provider.send({ chatId: 'v' }, { text: 'late' }, { signal: lost })).rejects.toThrow(
      'the turn was lost',
    )
    expect(log.entries.size).toBe(0)
  })

  it('warns of a random secret where replicas share a log', async () => {
    const log = new SharedLog()
    const warned = await replica({ secret: undefined }, log)
    running.push(warned)
    expect(warned.warnings.join()).toContain('secret')
  })
})
