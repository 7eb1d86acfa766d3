/**
 * T2: messages reach the runtime in the order of the connection, whatever Baileys looks up for the first of them. And
 * what the bot says reaches WhatsApp in the order in which it said it, whatever has to be uploaded for the first.
 */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Bot, silentLogger } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { MediaServer } from '../../../test/doubles/whatsapp-web/index.js'
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

describe('B1: order of what the bot says', () => {
  it('a text is not sent before the file that was said first, however long its upload takes', async () => {
    const media = await MediaServer.start()
    let answer: () => void = () => {}
    media.busy = new Promise((resolve) => (answer = resolve))
    await bench.paired()
    const socketOptions = { shouldSyncHistoryMessage: () => false, fetchAgent: media.agent }
    const bot = new Bot({ provider: bench.provider({ socketOptions }), logger: silentLogger })
    try {
      const sends: Promise<unknown>[] = []
      bot.onMessage((ctx) => {
        const card = { kind: 'document' as const, data: Buffer.from('la carta'), caption: 'la carta' }
        sends.push(ctx.reply({ media: card }), ctx.reply('buen provecho'))
      })
      await bot.start()
      await bot.ready
      const uploaded = once(media, 'upload')
      await bench.whatsapp.write(bench.ana, PHONE, 'la carta, por favor')
      await uploaded
      await ticks()
      expect(bench.whatsapp.received).toEqual([])
      answer()
      await Promise.all(sends)
      const said = bench.whatsapp.received.map(
        ({ message }) =>
          message.documentWithCaptionMessage?.message?.documentMessage?.caption ??
          message.documentMessage?.caption ??
          message.extendedTextMessage?.text,
      )
      expect(said).toEqual(['la carta', 'buen provecho'])
    } finally {
      await bot.stop()
      await media.stop()
    }
  })
})
