/**
 * (p) Reading beside handling: what a message costs each transport to read, from the bytes that the platform delivers
 * (JSON, a mail's source, WhatsApp's protobuf) to the neutral form, against what a message costs one replica's process
 * to handle through `Bot` on Redis. Rates are compared by the CPU time that they take, which other work on the machine
 * disturbs less than the clock. For webhooks the same with everything that `handle` does besides (signature in
 * constant time, hand-over to a runtime that accepts at once) is noted. A mail is read by `mailparser` first (MIME), which
 * the transport is built on and which costs more than everything else together: that is noted apart.
 */
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { BufferJSON, proto } from '@whiskeysockets/baileys'
import { readJsonBody, systemClock } from '@botmesh/core'
import * as discord from '@botmesh/discord'
import * as email from '@botmesh/email'
import * as instagram from '@botmesh/instagram'
import * as messenger from '@botmesh/messenger'
import * as meta from '@botmesh/meta'
import * as telegram from '@botmesh/telegram'

const SECRET = 'secret-of-the-benchmark'
const GRAPH = { accessToken: 'EAAbench', appSecret: SECRET, verifyToken: 'verify' }
const signed = (rawBody) => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(rawBody).digest('hex')}`,
})
// Its parser is no part of its public face.
const baileys = await import(new URL('../libs/baileys/dist/parse-inbound.js', import.meta.url))

const BOT = { botId: 123456789, username: 'tienda_bot', edits: 'deliver' }
const APPLICATION = { botId: '290926798999357250', listen: 'all', bots: 'ignore' }
const MAILBOX = {
  id: 'email:tienda@example.org',
  own: new Set(['tienda@example.org']),
  tag: 'bm01234567',
  domain: 'example.org',
}
const MAIL_READ_AT = Date.parse('2026-01-06T00:00:00Z')

/**
 * Each transport: `samples` turns a sample file into what is read (default: the bytes of its text), `read` turns that into
 * events, `messages` counts the messages among them. Webhooks also have a provider (Telegram's would call its API).
 * `fromBytes`, where a library reads first, does both.
 */
const TRANSPORTS = {
  telegram: {
    read: (raw) => telegram.parseInbound(readJsonBody(raw).value, BOT),
  },
  meta: {
    read: (raw) => meta.parseInbound(readJsonBody(raw).value, '106540352242922'),
    provider: () => new meta.MetaProvider({ ...GRAPH, phoneNumberId: '106540352242922' }),
    headers: signed,
  },
  messenger: {
    read: (raw) => messenger.parseInbound(readJsonBody(raw).value, '114862837561234'),
    provider: () => new messenger.MessengerProvider({ ...GRAPH, pageId: '114862837561234' }),
    headers: signed,
  },
  instagram: {
    read: (raw) => instagram.parseInbound(readJsonBody(raw).value, '17841405822304914'),
    provider: () => new instagram.InstagramProvider({ ...GRAPH, accountId: '17841405822304914' }),
    headers: signed,
  },
  discord: {
    read: (raw) => {
      const { t, d } = readJsonBody(raw).value
      return discord.parseInbound(t, d, APPLICATION)
    },
    messages: ({ messages }) => messages?.length ?? 0,
  },
  // What arrives once the message is decrypted.
  baileys: {
    samples: async (text) => {
      const received = proto.WebMessageInfo.fromObject(JSON.parse(text, BufferJSON.reviver))
      return Buffer.from(proto.WebMessageInfo.encode(received).finish())
    },
    read: (raw) => baileys.parseInbound(proto.WebMessageInfo.decode(raw)),
    messages: (message) => (message === null ? 0 : 1),
  },
  email: {
    samples: async (text) => ({ ...(await email.readMail(Buffer.from(text))), source: Buffer.from(text) }),
    read: (mail) => email.parseInbound(mail, MAILBOX, MAIL_READ_AT),
    fromBytes: async ({ source }) => email.parseInbound(await email.readMail(source), MAILBOX, MAIL_READ_AT),
    messages: ({ messages }) => messages?.length ?? 0,
  },
}

const messagesAmong = (events) => [events].flat().filter((event) => event.kind === 'message').length

/** The samples that hold messages of users, as bytes, and how many messages they are. */
async function bodiesOf(
  name,
  { samples = async (text) => Buffer.from(text), read, messages = messagesAmong },
) {
  const folder = new URL(`../libs/${name}/src/sample-messages/`, import.meta.url)
  const bodies = { messages: 0, raw: [] }
  for (const file of readdirSync(folder)) {
    const text = readFileSync(new URL(file, folder), 'utf8')
    const body = await samples(
      file.endsWith('.json') && name !== 'baileys' ? JSON.stringify(JSON.parse(text)) : text,
    )
    const count = messages(read(body))
    if (count === 0) continue
    bodies.messages += count
    bodies.raw.push(body)
  }
  return bodies
}

/** CPU time of this process a message, in µs, over `ms`. @param round reads some and says how many. */
async function cpuEach(round, ms) {
  const until = performance.now() + ms
  const before = process.cpuUsage()
  let messages = 0
  while (performance.now() < until) messages += await round()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / messages
}

function reading({ raw, messages }, read, ms) {
  return cpuEach(async () => {
    for (const body of raw) {
      const events = read(body)
      // Waiting where nothing is awaited would be measured too.
      if (events instanceof Promise) await events
    }
    return messages
  }, ms)
}

async function answering({ raw, messages }, { provider, headers }, ms) {
  const transport = provider()
  const quiet = () => undefined
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const sink = { message: async () => {}, state: quiet, error: quiet, logger, clock: systemClock }
  await transport.start(sink, new AbortController().signal)
  const calls = raw.map((rawBody) => ({ method: 'POST', headers: headers(rawBody), query: {}, rawBody }))
  const each = await cpuEach(async () => {
    for (const call of calls) {
      const { status } = await transport.handle(call)
      if (status !== 200) throw new Error(`a webhook was answered ${status}`)
    }
    return messages
  }, ms)
  await transport.stop()
  return each
}

/** @param {{ measureTurns: Function, rounds: number, ms: number, median: Function, require: Function, note: Function }} tools of run.mjs */
export async function parsing(server, { measureTurns, rounds, ms, median, require, note }) {
  console.log('(p) messages read / messages that one replica handles through Bot, on Redis, 64 in flight')
  const names = Object.keys(TRANSPORTS)
  const bodies = {}
  for (const name of names) bodies[name] = await bodiesOf(name, TRANSPORTS[name])
  for (const name of names) await reading(bodies[name], TRANSPORTS[name].read, 1000)
  const ratios = Object.fromEntries(names.map((name) => [name, { read: [], whole: [], bytes: [] }]))
  for (let round = 0; round < rounds; round += 1) {
    const job = { contender: 'bot', mode: 'flow', chats: 10_000, inFlight: 64, handlerMs: 0, warmUpMs: 5000 }
    const { clientUs, rate } = await measureTurns(server, { prefix: `p${round}`, ms, ...job }, 1)
    console.log(`  a message through Bot ${clientUs.toFixed(1)} µs (${rate.toFixed(0)} messages/s)`)
    for (const name of names) {
      const { read, provider, fromBytes } = TRANSPORTS[name]
      const readUs = await reading(bodies[name], read, ms / names.length)
      ratios[name].read.push(clientUs / readUs)
      const wholeUs = provider && (await answering(bodies[name], TRANSPORTS[name], ms / names.length))
      if (wholeUs) ratios[name].whole.push(clientUs / wholeUs)
      const bytesUs = fromBytes && (await reading(bodies[name], fromBytes, ms / names.length))
      if (bytesUs) ratios[name].bytes.push(clientUs / bytesUs)
      const library = bytesUs ? `, with its library ${bytesUs.toFixed(1)} µs` : ''
      const whole = wholeUs ? `, whole webhook ${wholeUs.toFixed(1)} µs` : ''
      console.log(`  ${name.padEnd(10)} read ${readUs.toFixed(1)} µs${whole}${library}`)
    }
  }
  for (const name of names) {
    const { read, whole, bytes } = ratios[name]
    require(`(p) ${name}: messages read / handled`, median(read), '>=', 20)
    if (whole.length > 0) note(`(p) ${name}: in whole webhooks / handled`, median(whole))
    if (bytes.length > 0) note(`(p) ${name}: from the source, by its library / handled`, median(bytes))
  }
}
