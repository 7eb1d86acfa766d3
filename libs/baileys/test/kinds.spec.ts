/** What the transport receives and sends, each kind once, over the real client: pairing by code, media, groups, …. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { BinaryNode } from '@whiskeysockets/baileys'
import { Bench, forgetSeed, isOpen, PHONE, statuses } from '../../../test/support/whatsapp-session/bench.js'
import { MediaServer } from '../../../test/doubles/whatsapp-web/index.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())
afterAll(forgetSeed)

/** The next stanza of this kind that the client sends. */
async function stanza(tag: string, where: (node: BinaryNode) => boolean = () => true): Promise<BinaryNode> {
  for (;;) {
    const [node] = (await once(bench.whatsapp, 'node')) as [BinaryNode]
    if (node.tag === tag && where(node)) return node
  }
}

it('pairs by a code typed on the phone, shown as an event and on the console', async () => {
  const write = jest.spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    const sink = bench.sink()
    await bench.provider({ pairingPhone: PHONE, printQr: true }).start(sink, new AbortController().signal)
    await sink.until(({ pairings }) => pairings.length > 0)
    const { kind, value = '' } = sink.pairings[0] ?? {}
    expect(kind).toBe('code')
    expect(value).toMatch(/^[A-Z0-9]{8}$/)
    expect(write.mock.calls.map(String).join()).toContain(`${value.slice(0, 4)}-${value.slice(4)}`)
    await bench.whatsapp.typeCode(value, PHONE)
    await sink.until(isOpen)
    expect(statuses(sink)).toEqual(['connecting', 'closed:restart-required', 'connecting', 'open'])
    expect(JSON.stringify(sink.logs)).not.toContain(value)
  } finally {
    write.mockRestore()
  }
})

it('a pairing by code that was broken off begins anew, with another code', async () => {
  const first = bench.sink()
  const provider = bench.provider({ pairingPhone: PHONE })
  await provider.start(first, new AbortController().signal)
  await first.until(({ pairings }) => pairings.length > 0)
  await provider.stop()
  await bench.gone()
  const second = bench.sink()
  await provider.start(second, new AbortController().signal)
  await second.until(({ pairings }) => pairings.length > 0)
  expect(second.pairings[0]?.value).not.toBe(first.pairings[0]?.value)
  await bench.whatsapp.typeCode(second.pairings[0]?.value ?? '', PHONE)
  await second.until(isOpen)
  expect(second.errors).toEqual([])
})

describe('B4: media', () => {
  it('what is sent is encrypted and uploaded; the same message received is fetched, bounded, and decrypted', async () => {
    const media = await MediaServer.start()
    const restore = media.reroute()
    try {
      const socketOptions = { shouldSyncHistoryMessage: () => false, fetchAgent: media.agent }
      const { provider, sink } = await bench.connected(bench.provider({ socketOptions }))
      const data = Buffer.from('nuestra carta, en un archivo '.repeat(2000))
      const content = { kind: 'document' as const, data, fileName: 'carta.pdf', mimeType: 'application/pdf' }
      await provider.send({ chatId: bench.ana.jid }, { media: { ...content, caption: 'la carta' } })
      const sent = bench.whatsapp.received.at(-1)?.message
      expect(media.files.size).toBe(1)
      expect([...media.files.values()][0]?.includes('carta')).toBe(false)
      await bench.whatsapp.write(bench.ana, PHONE, sent!)
      await sink.until(({ messages }) => messages.length === 1)
      const got = sink.messages[0]?.media
      expect(got).toMatchObject({
        kind: 'document',
        fileName: 'carta.pdf',
        caption: 'la carta',
        sizeBytes: data.length,
      })
      expect(Buffer.from(await provider.download(got!)).equals(data)).toBe(true)
      await expect(provider.download(got!, { maxBytes: 100 })).rejects.toThrow(/larger than 100 bytes/)
      media.files.clear()
      await expect(provider.download(got!)).rejects.toThrow(/could not be downloaded/)
    } finally {
      restore()
      await media.stop()
    }
  })

  it('no address but WhatsApp’s own is asked for a file', async () => {
    const key = Buffer.alloc(32).toString('base64url')
    for (const where of [
      'http://169.254.169.254/x',
      'https://evil.example/.whatsapp.net',
      'file:///etc/passwd',
    ]) {
      const download = bench.provider().download({ kind: 'image', id: `${where}#${key}` })
      await expect(download).rejects.toMatchObject({ details: { reason: 'no-media-id' } })
    }
  })
})

it('B4: a reaction, typing and a read mark go out, each as WhatsApp wants it', async () => {
  const { provider, sink } = await bench.connected()
  const id = await bench.whatsapp.write(bench.ana, PHONE, 'gracias')
  await sink.until(({ messages }) => messages.length === 1)
  const message = sink.messages[0]!
  await provider.react(message, '👍')
  expect(bench.whatsapp.received.at(-1)?.message.reactionMessage).toMatchObject({ text: '👍', key: { id } })
  const read = stanza('receipt', (node) => node.attrs['type'] === 'read')
  await provider.markRead(message)
  expect((await read).attrs).toMatchObject({ id, to: expect.stringContaining('@') })
  const typing = stanza('chatstate')
  await provider.typing({ chatId: message.chatId })
  expect((await typing).content).toEqual([expect.objectContaining({ tag: 'composing' })])
  await bench.whatsapp.write(bench.ana, PHONE, { reactionMessage: { text: '❤️', key: { id: 'X1' } } })
  await sink.until(({ messages }) => messages.length === 2)
  expect(sink.messages[1]).toMatchObject({ type: 'reaction', body: '❤️', quotedId: 'X1' })
  await provider.stop()
  await expect(provider.typing({ chatId: message.chatId })).rejects.toMatchObject({ outcome: 'retryable' })
})

it('B4: buttons’ replies arrive with the id of the button', async () => {
  const { sink } = await bench.connected()
  const buttonsResponseMessage = { selectedButtonId: 'm', selectedDisplayText: 'M', type: 1 }
  await bench.whatsapp.write(bench.ana, PHONE, { buttonsResponseMessage })
  await sink.until(({ messages }) => messages.length === 1)
  expect(sink.messages[0]).toMatchObject({ type: 'button', body: 'M', buttonId: 'm' })
})

it('B4: groups: read and written with sender keys; the chat is the group, the writer its participant', async () => {
  const { provider, sink } = await bench.connected()
  const group = '120363040000000001@g.us'
  for (const text of ['hola grupo', 'otra vez'])
    await bench.whatsapp.write(bench.ana, PHONE, text, { from: group })
  await sink.until(({ messages }) => messages.length === 2)
  expect(sink.messages[0]).toMatchObject({
    chatId: group,
    from: bench.ana.jid,
    participant: bench.ana.jid,
    isGroup: true,
    body: 'hola grupo',
  })
  await provider.send(
    { chatId: group, participant: bench.ana.jid },
    { text: 'hola', replyTo: sink.messages[0]!.id },
  )
  const text = bench.whatsapp.received.at(-1)?.message.extendedTextMessage
  expect(text).toMatchObject({ text: 'hola', contextInfo: { participant: bench.ana.jid } })
  expect(sink.errors).toEqual([])
})
