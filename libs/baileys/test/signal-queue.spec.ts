/** D1, Z10: accounts of one process do not disturb each other's keys, though their people are the same. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { systemClock } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { inSignalQueue } from '../src/signal-queue.js'
import { Bench, forgetSeed, isOpen, PHONE } from '../../../test/support/whatsapp-session/bench.js'
import { heldStorage } from '../../../test/support/whatsapp-session/held-storage.js'

let bench: Bench
let other: Bench
beforeEach(async () => {
  bench = await Bench.start()
  other = await Bench.start()
})
afterEach(async () => {
  await bench.stop()
  await other.stop()
})
afterAll(forgetSeed)

describe('the queue of Signal calls', () => {
  it('D1: runs calls of one address in order, whatever becomes of them, and others side by side', async () => {
    const ran: string[] = []
    let go: () => void = () => {}
    const first = inSignalQueue('a', () => new Promise<void>((resolve) => (go = resolve)))
    const second = inSignalQueue('a', async () => {
      ran.push('a2')
      throw new Error('no session')
    })
    const third = inSignalQueue('a', async () => ran.push('a3'))
    await inSignalQueue('b', async () => ran.push('b'))
    expect(ran).toEqual(['b'])
    go()
    await first
    await expect(second).rejects.toThrow('no session')
    await third
    expect(ran).toEqual(['b', 'a2', 'a3'])
  })

  it('D1, Z10: a refused message comes again, though another account was reading one of the same person', async () => {
    await bench.paired()
    await other.paired()
    const keys = heldStorage(bench.folder, 'read', (name) => name.startsWith('session-'))
    const busy = bench.sink()
    await bench
      .provider({ storage: keys.storage, folder: undefined })
      .start(busy, new AbortController().signal)
    await busy.until(isOpen)
    const sink = new RecordingSink({
      clock: {
        ...systemClock,
        setTimeout: (fn, ms, options) => systemClock.setTimeout(fn, ms > 1900 ? 20 : 1, options),
      },
    })
    await other.provider().start(sink, new AbortController().signal)
    await sink.until(isOpen)
    for (const { whatsapp, ana } of [bench, other]) {
      await whatsapp.write(ana, PHONE, 'uno')
      while (whatsapp.undelivered.length > 0) await once(whatsapp, 'receipt')
    }
    keys.hold()
    await bench.whatsapp.write(bench.ana, PHONE, 'dos')
    await keys.reached
    sink.accept = async () => {
      if (sink.errors.length === 0) throw new Error('the journal cannot be reached')
    }
    await other.whatsapp.write(other.ana, PHONE, 'hola')
    // It arrives, and waits: shown by nothing.
    for (let tick = 0; tick < 300; tick++) await new Promise((resolve) => setImmediate(resolve))
    keys.release()
    await sink.until(({ messages }) => messages.length === 2)
    await busy.until(({ messages }) => messages.length === 2)
    expect([sink.bodies, busy.bodies]).toEqual([
      ['uno', 'hola'],
      ['uno', 'dos'],
    ])
    expect([...other.whatsapp.retries, ...bench.whatsapp.retries]).toEqual([])
  })
})
