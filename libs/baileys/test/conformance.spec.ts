/** The suite that every provider passes, over the real client against the double; and damaged messages. */
import { readdirSync, readFileSync } from 'node:fs'
import { BufferJSON, proto, type WAMessage } from '@whiskeysockets/baileys'
import { afterAll, describe, expect, it } from '@jest/globals'
import { providerSuite, SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { parseInbound } from '../src/parse-inbound.js'
import { Bench, forgetSeed, PHONE } from '../../../test/support/whatsapp-session/bench.js'

afterAll(forgetSeed)

providerSuite(
  { describe, it, expect },
  {
    name: 'WhatsApp Web',
    guarantees: {
      connects: true,
      refusesSends: true,
      losesAnswers: true,
      redelivers: true,
      groups: true,
      reconnects: true,
      refusesCredentials: true,
    },
    bed: async () => {
      const bench = await Bench.start()
      await bench.paired()
      const { whatsapp, ana } = bench
      return {
        provider: bench.provider({ ackTimeout: '2s' }),
        connections: () => whatsapp.open,
        userWrites: async (body) => void (await whatsapp.write(ana, PHONE, body)),
        groupWrites: async (body) =>
          void (await whatsapp.write(ana, PHONE, body, { from: '120363040000000001@g.us' })),
        received: () => whatsapp.received.map(({ message }) => message.extendedTextMessage?.text ?? ''),
        refuseNextSend: () => (whatsapp.refuseSends = '463'),
        loseNextAnswer: () => (whatsapp.acknowledge = false),
        refused: () => {
          whatsapp.refuseLogins = 401
          return bench.provider({ afterLogout: 'keep' })
        },
        outage: () => {
          whatsapp.down = true
          whatsapp.drop()
          return () => (whatsapp.down = false)
        },
        close: () => bench.stop(),
      }
    },
  },
)

describe('damaged messages', () => {
  it('are parsed or ignored, never an exception', () => {
    const folder = new URL('../src/sample-messages/', import.meta.url)
    const samples = readdirSync(folder).map(
      (name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8'), BufferJSON.reviver) as WAMessage,
    )
    const random = new SeededRandom(seedOfRun())
    let parsed = 0
    for (let n = 0; n < 3000; n++) {
      const sample = random.pick(samples)
      // As bytes, which is how they come: whoever writes to the bot makes them.
      const bytes = proto.Message.encode(proto.Message.fromObject(sample.message ?? {})).finish()
      for (let times = random.int(6); times > 0 && bytes.length > 0; times--) {
        bytes[random.int(bytes.length)] = random.int(256)
      }
      let content: proto.Message
      try {
        content = proto.Message.decode(bytes)
      } catch {
        continue // Baileys goes no further either.
      }
      const message = parseInbound({
        ...sample,
        message: content,
        messageTimestamp: random.pick([NaN, -1, 7]),
      })
      if (message === null) continue
      parsed += 1
      const { raw: _, ...plain } = message
      for (const field of [plain.id, plain.chatId, plain.from, plain.body])
        expect(typeof field).toBe('string')
      expect(JSON.parse(JSON.stringify(plain))).toEqual(plain)
    }
    expect(parsed).toBeGreaterThan(300)
  })
})
