/** D1: WhatsApp is told "received" once the runtime has a message, not before; what it does not have comes again. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { systemClock, type Clock } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { Bench, forgetSeed, isOpen, PHONE } from '../../../test/support/whatsapp-session/bench.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())
afterAll(forgetSeed)

/** Acceptance that the test decides on. */
function gatedSink() {
  const sink = new RecordingSink()
  let decide: (accepted: boolean) => void = () => {}
  let asked: () => void = () => {}
  const waiting = new Promise<void>((resolve) => (asked = resolve))
  sink.accept = () => {
    asked()
    return new Promise((resolve, reject) => {
      decide = (accepted) => (accepted ? resolve() : reject(new Error('the journal cannot be reached')))
    })
  }
  return { sink, waiting, decide: (accepted: boolean) => decide(accepted) }
}

describe('D1, scenario 17: the acknowledgement', () => {
  it('comes after the acceptance', async () => {
    await bench.paired()
    const { sink, waiting, decide } = gatedSink()
    await bench.provider().start(sink, new AbortController().signal)
    await sink.until(isOpen)
    const receipts: string[] = []
    bench.whatsapp.on('receipt', (id) => receipts.push(id))
    const id = await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await waiting
    for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve))
    expect(receipts).toEqual([])
    const receipt = once(bench.whatsapp, 'receipt')
    decide(true)
    expect(await receipt).toEqual([id])
    expect(sink.bodies).toEqual(['hola'])
    expect(bench.whatsapp.undelivered).toEqual([])
  })

  it('scenario 22: a replica that ends before it: the next one gets the message, and can read it', async () => {
    await bench.paired()
    const first = gatedSink()
    const provider = bench.provider()
    await provider.start(first.sink, new AbortController().signal)
    await first.sink.until(isOpen)
    const id = await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await first.waiting
    const stopping = provider.stop()
    await bench.gone()
    first.decide(false)
    await stopping
    const next = new RecordingSink()
    await bench.provider().start(next, new AbortController().signal)
    await next.until(({ messages }) => messages.length === 1)
    expect(next.messages[0]).toMatchObject({ id, body: 'hola' })
    expect({ retries: bench.whatsapp.retries, errors: first.sink.errors }).toEqual({
      retries: [],
      errors: [],
    })
  })

  it('scenario 14: what stays refused is delivered again over a new connection, before what follows it', async () => {
    await bench.paired()
    let refusals = 10
    const sink = new RecordingSink({
      clock: {
        ...systemClock,
        setTimeout: (fn, ms, options) => systemClock.setTimeout(fn, ms > 1900 ? 20 : 1, options),
      },
    })
    sink.accept = async () => {
      if (refusals-- > 0) throw new Error('the journal cannot be reached')
    }
    await bench.provider().start(sink, new AbortController().signal)
    await sink.until(isOpen)
    await bench.whatsapp.write(bench.ana, PHONE, 'uno')
    await bench.whatsapp.write(bench.ana, PHONE, 'dos')
    await sink.until(({ messages }) => messages.length === 2)
    expect(sink.bodies).toEqual(['uno', 'dos'])
    expect(sink.errors).toEqual([
      expect.objectContaining({ details: expect.objectContaining({ reason: 'message-not-accepted' }) }),
    ])
    expect(bench.whatsapp.mostLoggedIn).toBe(1)
  })

  it.each([
    ['number', { messages: 3 }],
    ['size', { bytes: 3000 }],
  ])(
    'scenario 14: what waits behind a refused message is bounded by %s: disconnected until it is settled, told once, all delivered again',
    async (_, backlog) => {
      await bench.paired()
      // The pauses between attempts, which end when the test says so.
      const pauses: (() => void)[] = []
      const clock: Clock = {
        ...systemClock,
        setTimeout: (fn, ms, options) => {
          if (options?.background !== true) return systemClock.setTimeout(fn, ms >= 2000 ? ms : 5, options)
          pauses.push(fn)
          return { cancel: () => {} }
        },
      }
      const sink = new RecordingSink({ clock })
      let refusing = true
      sink.accept = async () => {
        if (refusing) throw new Error('the journal cannot be reached')
      }
      const warned = () => sink.logs.filter(({ level }) => level === 'warn')
      await bench.provider({ backlog }).start(sink, new AbortController().signal)
      await sink.until(isOpen)
      for (let n = 0; n < 4; n++) await bench.whatsapp.write(bench.ana, PHONE, String(n).repeat(1000))
      await sink.until(({ states }) => states.at(-1)?.status === 'closed')
      expect(sink.states.at(-1)).toEqual({ status: 'closed', reason: 'backlog-full' })
      expect(warned()).toEqual([
        {
          level: 'warn',
          details: {
            provider: 'baileys:tienda',
            messages: expect.any(Number),
            bytes: expect.any(Number),
          },
          message: expect.stringContaining('too many messages wait'),
        },
      ])
      expect({ taken: sink.messages.length, open: bench.whatsapp.open }).toEqual({ taken: 0, open: 0 })
      const { accepted } = bench.whatsapp
      refusing = false
      for (const over of pauses) over()
      const distinct = () => new Set(sink.messages.map(({ id }) => id)).size
      await sink.until(() => distinct() === 4)
      expect(bench.whatsapp.accepted).toBe(accepted + 1)
      expect(sink.errors).toEqual([])
      expect(warned()).toHaveLength(1)
    },
  )

  it('T2: an answer given at once, in the middle of the acceptance, goes out and its keys are kept', async () => {
    const { provider, sink } = await bench.connected()
    // Not awaited by an acceptance: sending needs the keys that the acceptance holds.
    const sends: Promise<unknown>[] = []
    sink.accept = async (message) => {
      sends.push(provider.send({ chatId: message.chatId }, { text: `re: ${message.body}` }))
    }
    for (const text of ['a', 'b', 'c']) await bench.whatsapp.write(bench.ana, PHONE, text)
    await sink.until(({ messages }) => messages.length === 3)
    await Promise.all(sends)
    // One chat: taken in the order of arrival, and answered in it.
    const answers = bench.whatsapp.received.map(({ message }) => message.extendedTextMessage?.text)
    expect(answers).toEqual(['re: a', 're: b', 're: c'])
    expect(bench.whatsapp.received.map(({ to }) => to)).toEqual(Array(3).fill(bench.ana.jid))
    expect(sink.errors).toEqual([])
  })
})
