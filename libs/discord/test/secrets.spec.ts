/** The token of the bot, and those of interactions, are in no log and no error, whatever goes wrong. */
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { RecordingSink } from '@botmesh/core/testing'
import { DiscordProvider } from '@botmesh/discord'
import { DM, TOKEN, type DiscordFault } from '../../../test/doubles/discord/index.js'
import { Bench, sharedLog, SinkWithLog } from './support/bench.js'

let bench: Bench
beforeEach(async () => {
  bench = await Bench.start()
})
afterEach(() => bench.stop())

const FAULTS: DiscordFault[] = [
  { kind: 'error', status: 400, code: 50035, message: `no: ${TOKEN}` },
  { kind: 'error', status: 401, code: 0, message: 'Unauthorized' },
  { kind: 'error', status: 403, code: 50013 },
  { kind: 'error', status: 500 },
  { kind: 'limit', retryAfterMs: 60_000 },
  { kind: 'lost-answer' },
]

/** All that an operator could see: causes, details and hidden properties too. */
function everything(sink: RecordingSink, thrown: unknown[]): string {
  return inspect([sink.logs, sink.errors, sink.states, thrown], { depth: 12, showHidden: true })
}

describe('secrets', () => {
  it('are in no log, no state and no error of a provider that has all kinds of trouble', async () => {
    const thrown: unknown[] = []
    const log = sharedLog()
    const sink = bench.sink(new SinkWithLog(log))
    const { provider } = await bench.open({ commands: [{ name: 'pedido' }] }, sink)
    for (const fault of FAULTS) {
      bench.discord.failNext(/callback$/, fault)
      const { id, token } = bench.discord.interact({ data: { id: '1', type: 1, name: 'pedido' } })
      const inboundId = `interaction:${id}`
      await sink.until(({ messages }) => messages.some((message) => message.id === inboundId))
      bench.discord.failNext(/messages$|webhooks|typing/, fault)
      await provider
        .send({ chatId: DM }, { text: 'hola' }, { inboundId })
        .catch((error: unknown) => thrown.push(error))
      const seen = everything(sink, thrown)
      expect(seen).not.toContain(token)
    }
    bench.discord.gateway.close(4000)
    await sink.until(({ states }) => states.length === 4)
    bench.discord.gateway.refuseWith = 4004
    bench.discord.gateway.close(4000)
    await sink.until(({ errors }) => errors.length > 0)
    await provider.stop()
    expect(thrown.length).toBeGreaterThan(3)
    expect(sink.logs.length).toBeGreaterThan(10)
    const seen = everything(sink, thrown)
    for (const secret of [TOKEN, TOKEN.split('.')[2]!, 'secretInteractionToken']) {
      expect(seen).not.toContain(secret)
    }
    const stored = JSON.stringify(await log.read('discord:tienda:session', null))
    expect(stored).toContain('session-1')
    expect(stored).not.toContain(TOKEN)
  })

  it('a wrong token is not quoted, neither by the constructor nor by start', async () => {
    const odd = 'Bot abc.def.ghi-very-secret'
    expect(() => new DiscordProvider({ token: odd })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('very-secret') }),
    )
    const wrong = TOKEN.replace('AAsecret', 'AAwrong')
    const sink = new RecordingSink()
    const error = await bench.begin({ token: wrong }, sink).catch((thrown: unknown) => thrown)
    expect(everything(sink, [error])).not.toContain('AAwrong')
  })
})
