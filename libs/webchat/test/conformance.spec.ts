/** The suite that every provider passes, on a real HTTP server with a page's WebSocket; and damaged frames. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { providerSuite, SeededRandom, seedOfRun } from '@botmesh/core/testing'
import { WebchatProvider } from '@botmesh/webchat'
import { damageBody } from '../../../test/doubles/damage-body.js'
import { parseFrame } from '../src/protocol.js'
import { Page, SECRET } from './support/replica.js'

providerSuite(
  { describe, it, expect },
  {
    name: 'Web chat',
    // It connects to nothing: pages connect to it.
    guarantees: { connects: false, refusesSends: false },
    bed: async () => {
      const provider = new WebchatProvider({ secret: SECRET })
      const server = createServer(provider.middleware())
      provider.attach(server)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}${provider.path}/ws`
      let page: Promise<Page> | undefined
      let serial = 0
      const shown: string[] = []
      // What is sent is in the log then; the page is shown it a moment later.
      const send = provider.send.bind(provider)
      provider.send = async (to, content, options) => {
        const sent = await send(to, content, options)
        if (content.text !== undefined) await (await page)?.next('msg', ({ text }) => text === content.text)
        shown.push(content.text ?? '')
        return sent
      }
      return {
        provider,
        connections: () => 0,
        userWrites: async (body) => {
          page ??= Page.join(url)
          serial += 1
          const cid = `message-${serial}`
          ;(await page).say(body, cid)
          await (await page).next('ack', (frame) => frame.cid === cid)
        },
        received: () => shown,
        secrets: [SECRET],
        close: async () => {
          await (await page)?.leave()
          server.closeAllConnections()
          await new Promise((resolve) => server.close(resolve))
        },
      }
    },
  },
)

it('damaged frames are refused or read, never an exception', () => {
  const random = new SeededRandom(seedOfRun())
  const good = [
    '{"t":"hello","v":1,"lang":"es","after":"1-2"}',
    '{"t":"msg","cid":"message-1","text":"hola","replyTo":"x"}',
    '{"t":"file","cid":"message-1","name":"a.pdf","type":"application/pdf","size":9}',
    '{"t":"ping"}',
  ]
  for (let n = 0; n < 3000; n++) {
    const frame = parseFrame(damageBody(random.pick(good), random))
    if (frame?.t === 'msg') expect(frame.text.trim()).not.toBe('')
  }
})
