/**
 * (p) Reading webhooks beside handling messages: what a message costs each transport to read (JSON and parse),
 * against what a message costs one replica's process to handle through `Bot` on Redis. Rates are compared by the CPU
 * time that they take, which other work on the machine disturbs less than the clock. The same with everything that
 * `handle` does besides (signature in constant time, hand-over to a runtime that accepts at once) is noted.
 */
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { readJsonBody, systemClock } from '@botmesh/core'
import * as instagram from '@botmesh/instagram'
import * as messenger from '@botmesh/messenger'
import * as meta from '@botmesh/meta'
import * as telegram from '@botmesh/telegram'

const SECRET = 'secret-of-the-benchmark'
const GRAPH = { accessToken: 'EAAbench', appSecret: SECRET, verifyToken: 'verify' }
const signed = (rawBody) => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(rawBody).digest('hex')}`,
})
const BOT = { botId: 123456789, username: 'tienda_bot', edits: 'deliver' }

/** Each transport's own parser, and a provider for its whole webhook (Telegram's would call its API). */
const TRANSPORTS = {
  telegram: {
    parse: (body) => telegram.parseInbound(body, BOT),
  },
  meta: {
    parse: (body) => meta.parseInbound(body, '106540352242922'),
    provider: () => new meta.MetaProvider({ ...GRAPH, phoneNumberId: '106540352242922' }),
    headers: signed,
  },
  messenger: {
    parse: (body) => messenger.parseInbound(body, '114862837561234'),
    provider: () => new messenger.MessengerProvider({ ...GRAPH, pageId: '114862837561234' }),
    headers: signed,
  },
  instagram: {
    parse: (body) => instagram.parseInbound(body, '17841405822304914'),
    provider: () => new instagram.InstagramProvider({ ...GRAPH, accountId: '17841405822304914' }),
    headers: signed,
  },
}

/** The samples that hold messages of users, as bytes, and how many messages they are. */
function bodiesOf(name, parse) {
  const folder = new URL(`../libs/${name}/src/sample-messages/`, import.meta.url)
  const all = readdirSync(folder).map((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')))
  const messagesIn = (body) => [parse(body)].flat().filter((event) => event.kind === 'message').length
  const kept = all.filter((body) => messagesIn(body) > 0)
  return {
    messages: kept.reduce((sum, body) => sum + messagesIn(body), 0),
    raw: kept.map((body) => Buffer.from(JSON.stringify(body))),
  }
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

function reading({ raw, messages }, parse, ms) {
  return cpuEach(() => {
    for (const body of raw) parse(readJsonBody(body).value)
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
  console.log(
    '(p) messages read from webhooks / messages that one replica handles through Bot, on Redis, 64 in flight',
  )
  const names = Object.keys(TRANSPORTS)
  const bodies = Object.fromEntries(names.map((name) => [name, bodiesOf(name, TRANSPORTS[name].parse)]))
  for (const name of names) await reading(bodies[name], TRANSPORTS[name].parse, 1000)
  const ratios = Object.fromEntries(names.map((name) => [name, { read: [], whole: [] }]))
  for (let round = 0; round < rounds; round += 1) {
    const job = { contender: 'bot', mode: 'flow', chats: 10_000, inFlight: 64, handlerMs: 0, warmUpMs: 5000 }
    const { clientUs, rate } = await measureTurns(server, { prefix: `p${round}`, ms, ...job }, 1)
    console.log(`  a message through Bot ${clientUs.toFixed(1)} µs (${rate.toFixed(0)} messages/s)`)
    for (const name of names) {
      const { parse, provider } = TRANSPORTS[name]
      const readUs = await reading(bodies[name], parse, ms / names.length)
      ratios[name].read.push(clientUs / readUs)
      const wholeUs = provider && (await answering(bodies[name], TRANSPORTS[name], ms / names.length))
      if (wholeUs) ratios[name].whole.push(clientUs / wholeUs)
      const whole = wholeUs ? `, whole webhook ${wholeUs.toFixed(1)} µs` : ''
      console.log(`  ${name.padEnd(10)} read ${readUs.toFixed(1)} µs${whole}`)
    }
  }
  for (const name of names) {
    const { read, whole } = ratios[name]
    require(`(p) ${name}: messages read / handled`, median(read), '>=', 20)
    if (whole.length > 0) note(`(p) ${name}: in whole webhooks / handled`, median(whole))
  }
}
