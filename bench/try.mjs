/**
 * Whether contenders still work: a few turns of each, and what the oracle says of them, a line of JSON each. No figures
 * to quote: it is over before anything is warm.
 *
 *   node bench/try.mjs [--ms 300] [--chats 40] [--in-flight 8] [--handler-ms 0] [--port of a Redis] botmesh:full bullmq …
 *
 * `--at-least 30` tries again for longer, up to half a minute, where the machine was too busy for as many turns.
 */
import { parseArgs } from 'node:util'
import { CONTENDERS } from './contenders.mjs'
import { startRedis, watch } from './private-redis.mjs'
import { measureTurns } from './processes.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ms: { type: 'string', default: '300' },
    chats: { type: 'string', default: '40' },
    'in-flight': { type: 'string', default: '8' },
    'handler-ms': { type: 'string', default: '0' },
    'at-least': { type: 'string', default: '1' },
    port: { type: 'string' },
  },
})
const ALL = ['botmesh:full', 'botmesh:plain', 'botmesh:state', 'bot:flow', 'bot:durable', 'bot:alone']
const others = Object.keys(CONTENDERS).filter((name) => name !== 'botmesh' && name !== 'bot')
/** Of a message that another replica works on, the one that took it in hears nothing. */
const ALONE = new Set(['grammy', 'bot:alone', 'bot:durable'])

/** Until it has done as much as was asked for. */
async function tryOut(job, processes) {
  for (let ms = Number(options.ms); ; ms *= 4) {
    const found = await measureTurns(server, { ...job, ms }, processes)
    if (found.turns >= Number(options['at-least']) || ms > 8000) return found
  }
}

const server = options.port === undefined ? await startRedis() : watch(Number(options.port))
try {
  for (const label of positionals.length > 0 ? positionals : [...ALL, ...others]) {
    const [contender, mode] = label.split(':')
    const job = {
      ...{ contender, mode, prefix: `try-${contender}`, warmUpMs: 200 },
      ...{ chats: Number(options.chats), inFlight: Number(options['in-flight']) },
      handlerMs: Number(options['handler-ms']),
    }
    const { notes: _, ...found } = await tryOut(job, ALONE.has(label) ? 1 : 2)
    console.log(JSON.stringify({ contender: label, ...found }))
  }
} finally {
  if (server.stop) await server.stop()
  else server.admin.disconnect()
}
