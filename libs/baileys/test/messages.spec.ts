/** Pairing and text in both directions, end to end: real Baileys, Noise and Signal, against the double. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Bench, PHONE, statuses } from '../../../test/support/whatsapp-session/bench.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(async () => {
  await bench.stop()
})

describe('WhatsApp Web, end to end', () => {
  it('pairs by QR code (515 is a part of it), then opens', async () => {
    const { sink, provider } = await bench.pair()
    expect(sink.pairings[0]?.kind).toBe('qr')
    expect(statuses(sink)).toEqual(['connecting', 'closed:restart-required', 'connecting', 'open'])
    expect(provider.state).toEqual({ status: 'open' })
    expect(sink.errors).toEqual([])
  })

  it('B4: an encrypted text arrives in neutral form, and an answer reaches the other phone', async () => {
    const { sink, provider } = await bench.pair()
    const id = await bench.whatsapp.write(bench.ana, PHONE, 'hola, ¿tienen té?')
    await sink.until(() => sink.messages.length > 0)
    expect(sink.messages[0]).toMatchObject({
      id,
      chatId: bench.ana.jid,
      from: bench.ana.jid,
      fromName: 'Ana',
      type: 'text',
      body: 'hola, ¿tienen té?',
      isGroup: false,
    })
    const sent = await provider.send({ chatId: bench.ana.jid }, { text: 'sí, verde', replyTo: id })
    const [received] = bench.whatsapp.received
    expect(received?.id).toBe(sent.id)
    expect(received?.message.extendedTextMessage).toMatchObject({
      text: 'sí, verde',
      contextInfo: { stanzaId: id, quotedMessage: { conversation: 'hola, ¿tienen té?' } },
    })
    await bench.whatsapp.write(bench.ana, PHONE, 'gracias')
    await sink.until(() => sink.messages.length > 1)
    expect(sink.bodies).toEqual(['hola, ¿tienen té?', 'gracias'])
    expect(sink.errors).toEqual([])
  })
})
