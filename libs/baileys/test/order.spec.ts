/** T2: messages reach the runtime in the order of the connection, whatever Baileys looks up for the first of them. */
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { RecordingSink } from '@botmesh/core/testing'
import { Bench, forgetSeed, isOpen, PHONE } from '../../../test/support/whatsapp-session/bench.js'
import { heldStorage } from '../../../test/support/whatsapp-session/held-storage.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())
afterAll(forgetSeed)

/** The first look at a person's list of devices lasts until `release`. */
function slowLookUp() {
  const held = heldStorage(bench.folder, 'read', (name) => name === `device-list-${bench.ana.phone}`)
  held.hold()
  return held
}

async function ticks(): Promise<void> {
  for (let tick = 0; tick < 100; tick++) await new Promise((resolve) => setImmediate(resolve))
}

describe('T2: order within a chat', () => {
  it('a first message that Baileys takes longer for is not overtaken by those after it', async () => {
    await bench.paired()
    const { storage, reached, release } = slowLookUp()
    const sink = new RecordingSink()
    await bench.provider({ storage, folder: undefined }).start(sink, new AbortController().signal)
    await sink.until(isOpen)
    await bench.whatsapp.write(bench.ana, PHONE, 'a')
    await reached
    await bench.whatsapp.write(bench.ana, PHONE, 'b')
    await bench.whatsapp.write(bench.ana, PHONE, 'c')
    await ticks()
    release()
    await sink.until(({ messages }) => messages.length === 3)
    expect(sink.bodies).toEqual(['a', 'b', 'c'])
    expect(bench.whatsapp.retries).toEqual([])
  })

  it('what waited while nothing was connected comes before what is written then', async () => {
    await bench.paired()
    await bench.whatsapp.write(bench.ana, PHONE, 'a')
    await bench.whatsapp.write(bench.ana, PHONE, 'b')
    const { storage, reached, release } = slowLookUp()
    const sink = new RecordingSink()
    await bench.provider({ storage, folder: undefined }).start(sink, new AbortController().signal)
    await reached
    await bench.whatsapp.write(bench.ana, PHONE, 'c')
    await ticks()
    release()
    await sink.until(({ messages }) => messages.length === 3)
    expect(sink.bodies).toEqual(['a', 'b', 'c'])
    expect(bench.whatsapp.retries).toEqual([])
  })
})
