/** T2: messages reach the runtime in the order of the connection, whatever Baileys looks up for the first of them. */
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { RecordingSink } from '@botmesh/core/testing'
import { FolderStorage, type SessionStorage } from '@botmesh/baileys'
import { Bench, forgetSeed, isOpen, PHONE } from '../../../test/support/whatsapp-session/bench.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())
afterAll(forgetSeed)

/** The session in its folder; the first look at a person's list of devices lasts until `release`. */
function slowLookUp(folder: string) {
  let release: () => void = () => {}
  let begun: () => void = () => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  const looking = new Promise<void>((resolve) => (begun = resolve))
  const inner = new FolderStorage(folder)
  const storage: SessionStorage = {
    open: async (session) => {
      const records = await inner.open(session)
      return {
        write: (changes) => records.write(changes),
        retire: () => records.retire(),
        close: () => records.close(),
        read: async (names) => {
          if (names.some((name) => name === `device-list-${bench.ana.phone}`)) {
            begun()
            await held
          }
          return records.read(names)
        },
      }
    },
  }
  return { storage, looking, release: () => release() }
}

async function ticks(): Promise<void> {
  for (let tick = 0; tick < 100; tick++) await new Promise((resolve) => setImmediate(resolve))
}

describe('T2: order within a chat', () => {
  it('a first message that Baileys takes longer for is not overtaken by those after it', async () => {
    await bench.paired()
    const { storage, looking, release } = slowLookUp(bench.folder)
    const sink = new RecordingSink()
    await bench.provider({ storage, folder: undefined }).start(sink, new AbortController().signal)
    await sink.until(isOpen)
    await bench.whatsapp.write(bench.ana, PHONE, 'a')
    await looking
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
    const { storage, looking, release } = slowLookUp(bench.folder)
    const sink = new RecordingSink()
    await bench.provider({ storage, folder: undefined }).start(sink, new AbortController().signal)
    await looking
    await bench.whatsapp.write(bench.ana, PHONE, 'c')
    await ticks()
    release()
    await sink.until(({ messages }) => messages.length === 3)
    expect(sink.bodies).toEqual(['a', 'b', 'c'])
    expect(bench.whatsapp.retries).toEqual([])
  })
})
