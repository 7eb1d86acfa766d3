/** WhatsApp Cloud API, Messenger, Instagram: every sample through the signed webhook, every kind of send to the double. */
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Message, OutgoingContent, Provider } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { InstagramProvider, parseInbound as parseInstagram } from '@botmesh/instagram'
import { MessengerProvider, parseInbound as parseMessenger } from '@botmesh/messenger'
import { MetaProvider, parseInbound as parseMeta } from '@botmesh/meta'
import { GraphApiDouble } from '../doubles/graph-api.js'

const SECRET = 'app-secret-of-the-tests'
const TOKEN = 'EAAtokenOfTheTests'
const [NUMBER, PAGE, ACCOUNT] = ['106540352242922', '114862837561234', '17841405822304914']

interface Kind {
  name: string
  make: (options: {
    accessToken: string
    appSecret: string
    verifyToken: string
    graphUrl: string
  }) => Provider
  parse: (body: unknown) => { kind: string; message?: Message }[]
  to: string
}
const KINDS: Kind[] = [
  {
    name: 'meta',
    make: (options) => new MetaProvider({ ...options, phoneNumberId: NUMBER }),
    parse: (body) => parseMeta(body, NUMBER),
    to: '34600111222',
  },
  {
    name: 'messenger',
    make: (options) => new MessengerProvider({ ...options, pageId: PAGE }),
    parse: (body) => parseMessenger(body, PAGE),
    to: '6024133997654321',
  },
  {
    name: 'instagram',
    make: (options) => new InstagramProvider({ ...options, accountId: ACCOUNT }),
    parse: (body) => parseInstagram(body, ACCOUNT),
    to: '1254459154682919',
  },
]

const buttons = [{ id: 'size:M', text: 'Talla M' }]
const media = { kind: 'image' as const, url: 'https://shop.example/a.jpg' }
const list = { button: 'Elegir', sections: [{ rows: [{ id: 'aurora', title: 'Aurora' }] }] }
/** What is sent, and words that the call has in it. */
const SENDS: [kind: string, content: OutgoingContent, words: string[]][] = [
  ['text', { text: 'Hola' }, ['Hola']],
  ['media', { media }, [media.url]],
  ['buttons', { text: '¿Talla?', buttons }, ['size:M', 'Talla M']],
  ['a list', { text: '¿Cuál?', list }, ['aurora', 'Aurora']],
]

let graph: GraphApiDouble
beforeEach(async () => {
  graph = await new GraphApiDouble({ accessToken: TOKEN }).listen()
})
afterEach(() => graph.close())

const optionsOf = () => ({
  accessToken: TOKEN,
  appSecret: SECRET,
  verifyToken: 'verify',
  graphUrl: graph.url,
})

describe.each(KINDS)('B4: $name over the wire', ({ name, make, parse, to }) => {
  it('every sample: signed, answered 200, and each of its messages reaches the runtime once', async () => {
    const provider = make(optionsOf())
    const sink = new RecordingSink()
    await provider.start(sink, new AbortController().signal)
    const folder = new URL(`../../libs/${name}/src/sample-messages/`, import.meta.url)
    const expected: string[] = []
    for (const file of readdirSync(folder)) {
      const rawBody = readFileSync(new URL(file, folder))
      const signature = `sha256=${createHmac('sha256', SECRET).update(rawBody).digest('hex')}`
      const headers = { 'x-hub-signature-256': signature }
      const answer = await provider.handle?.({ method: 'POST', headers, query: {}, rawBody })
      expect([file, answer?.status]).toEqual([file, 200])
      const events = parse(JSON.parse(rawBody.toString()))
      expected.push(...events.flatMap(({ message }) => (message === undefined ? [] : [message.id])))
    }
    expect(expected.length).toBeGreaterThan(10)
    expect(sink.messages.map(({ id }) => id).toSorted()).toEqual(expected.toSorted())
    await provider.stop()
  })

  it.each(SENDS)('%s is one call or a few of the Graph API', async (_kind, content, words) => {
    await make(optionsOf()).send({ chatId: to }, content)
    const said = JSON.stringify(graph.sends.map(({ body }) => body))
    expect(words.filter((word) => !said.includes(word))).toEqual([])
    expect(graph.sends.every((send) => send.to === to)).toBe(true)
  })
})

describe('B4: only WhatsApp’s', () => {
  it('a template with its variables', async () => {
    const template = { name: 'pedido', language: 'es', variables: ['Lucía'] }
    await KINDS[0]!.make(optionsOf()).send({ chatId: '34600111222' }, { template })
    expect(graph.sends[0]?.body).toMatchObject({
      type: 'template',
      template: {
        name: 'pedido',
        components: [{ type: 'body', parameters: [{ type: 'text', text: 'Lucía' }] }],
      },
    })
  })
})
