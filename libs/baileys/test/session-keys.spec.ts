/** D1: a person's Signal session has one writer at a time, though messages come in and go out at once. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { RecordingSink } from '@botmesh/core/testing'
import type { BaileysProvider } from '@botmesh/baileys'
import { Bench, forgetSeed, PHONE } from '../../../test/support/whatsapp-session/bench.js'
import { heldStorage, type HeldStorage } from '../../../test/support/whatsapp-session/held-storage.js'

const GROUP = '120363000000000009@g.us'

let bench: Bench
let provider: BaileysProvider
let sink: RecordingSink
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())
afterAll(forgetSeed)

/**
 * Connected, with Ana's last message opened by a key that follows the one before it: from here on each side's keys
 * advance by themselves. After an answer they would begin anew, and one that was used twice would not show.
 */
async function chatting(held?: HeldStorage): Promise<void> {
  const storage = held === undefined ? {} : { storage: held.storage, folder: undefined }
  const connected = await bench.connected(bench.provider({ ackTimeout: '2s', ...storage }))
  provider = connected.provider
  sink = connected.sink
  await written('uno')
  await send('a')
  await written('dos')
}

/** Ana writes, and WhatsApp is told that it arrived. */
async function written(text: string): Promise<void> {
  await bench.whatsapp.write(bench.ana, PHONE, text)
  await arrived()
}

async function arrived(): Promise<void> {
  while (bench.whatsapp.undelivered.length > 0) await once(bench.whatsapp, 'receipt')
}

async function ticks(): Promise<void> {
  for (let tick = 0; tick < 200; tick++) await new Promise((resolve) => setImmediate(resolve))
}

const send = (text: string, chatId = bench.ana.jid) => provider.send({ chatId }, { text })
const read = () => bench.whatsapp.received.flatMap(({ message }) => message.extendedTextMessage?.text ?? [])

describe('D1: a session that is written to and from at once', () => {
  it('answers that leave while a message waits to be accepted are sealed with keys of their own', async () => {
    await chatting()
    let asked: () => void = () => {}
    let accept: () => void = () => {}
    const asking = new Promise<void>((resolve) => (asked = resolve))
    const accepted = new Promise<void>((resolve) => (accept = resolve))
    sink.accept = async () => {
      asked()
      await accepted
    }
    await bench.whatsapp.write(bench.ana, PHONE, 'tres')
    await asking
    // Not held up by it: whether it is accepted may depend on the answers.
    await send('b')
    await send('c', bench.ana.lidJid)
    accept()
    await arrived()
    await send('d')
    await written('cuatro')
    expect(read()).toEqual(['a', 'b', 'c', 'd'])
    expect(sink.bodies).toEqual(['uno', 'dos', 'tres', 'cuatro'])
    expect(bench.whatsapp.retries).toEqual([])
  })

  it('a message and an answer at the same moment, while reading keys takes long', async () => {
    const held = heldStorage(bench.folder, 'read', (name) => name.startsWith('session-'))
    await chatting(held)
    held.hold()
    const answers = [send('b'), send('c', bench.ana.lidJid)]
    await held.reached
    await bench.whatsapp.write(bench.ana, PHONE, 'tres')
    await bench.whatsapp.write(bench.ana, PHONE, 'cuatro')
    await ticks()
    held.release()
    await Promise.all(answers)
    await arrived()
    await send('d')
    await written('cinco')
    expect(read()).toEqual(['a', 'b', 'c', 'd'])
    expect(sink.bodies).toEqual(['uno', 'dos', 'tres', 'cuatro', 'cinco'])
    expect(bench.whatsapp.retries).toEqual([])
  })

  it('what was written before the first answer of a connection is opened by the session before, and answers can be read', async () => {
    await chatting()
    await provider.stop()
    const again = await bench.connected(bench.provider({ ackTimeout: '2s' }))
    provider = again.provider
    // Baileys agrees on a new session with whoever it answers first, while the message still waits.
    again.sink.accept = ({ body }) => (body === 'tres' ? send('b').then(() => undefined) : Promise.resolve())
    await bench.whatsapp.write(bench.ana, PHONE, 'tres')
    await bench.whatsapp.write(bench.ana, PHONE, 'cuatro')
    await arrived()
    await send('c')
    await written('cinco')
    await send('d')
    expect(read()).toEqual(['a', 'b', 'c', 'd'])
    expect(again.sink.bodies).toEqual(['tres', 'cuatro', 'cinco'])
    expect([bench.whatsapp.errors, bench.whatsapp.retries]).toEqual([[], []])
  })

  it.each([
    ['a person', 'session-', () => bench.ana.jid],
    ['a group', 'sender-key-', () => GROUP],
  ])('that a key of %s is used up is written before the message leaves', async (_, records, chat) => {
    const held = heldStorage(bench.folder, 'write', (name) => name.startsWith(records))
    await chatting(held)
    await send('a', chat())
    const before = bench.whatsapp.received.length
    held.hold()
    const sending = send('b', chat())
    await held.reached
    await ticks()
    expect(bench.whatsapp.received.slice(before)).toEqual([])
    held.release()
    await sending
    expect(read().at(-1)).toBe('b')
  })
})
