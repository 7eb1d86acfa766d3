/**
 * One replica of each of several cells of the matrix, in a process of its own, so that an accident that happens to the
 * process happens to all of them: bots that share nothing but the process, each with a prefix of its own. The test's
 * side is `process-stage.ts`.
 */
import { Bot } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
import { RedisStore } from '@botmesh/redis-store'
import { onCommand, tell } from '../../support/replica-side.js'
import { CHAT_ID } from './bed.js'
import { define, Obstacle } from './conversations.js'
import type { Cell } from './matrix.js'
import { isUnexpected, optionsOf, sceneOf } from './run-cell.js'

interface Part {
  prefix: string
  cell: Cell
}

interface Player {
  bot: Bot
  provider: FakeProvider
  obstacle: Obstacle
  stop(): Promise<void>
}

const { REDIS_URL: url = '', LEASE_MS, ROLE, PARTS = '[]' } = process.env
const leaseMs = Number(LEASE_MS)
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }
const players = new Map((JSON.parse(PARTS) as Part[]).map((part) => [part.prefix, playerOf(part)]))

onCommand(obey)
process.once('SIGTERM', () => void end())
await Promise.all([...players.values()].map(({ bot }) => bot.start()))
tell('started')

function playerOf({ prefix, cell }: Part): Player {
  const obstacle = new Obstacle(() => tell('held-up', { prefix }))
  // Only `a` is ever held up: there everything begins.
  if (ROLE === 'b') {
    obstacle.remove()
    void obstacle.pass()
  }
  const store = new RedisStore({ url, prefix })
  const provider = new FakeProvider()
  provider.platform.onSend(({ text }) => tell('sent', { prefix, text, at: Date.now() }))
  const { config, coordination } = optionsOf(leaseMs, cell)
  const coordinator = store.coordinator({ leaseMs, ...(ROLE === undefined ? {} : { replicaId: ROLE }) })
  const bot = new Bot({
    ...{ ...config, name: ROLE ?? '', logger: silent, store, provider },
    coordination: { coordinator, ...coordination },
  })
  bot.on('error', ({ error }) => {
    if (isUnexpected(error)) tell('error', { prefix, error: String(error) })
  })
  bot.on('coordination:handover', ({ outcome, reason }) => tell('handover', { prefix, outcome, reason }))
  bot.on('coordination:lease-lost', ({ reason }) => tell('lost', { prefix, reason }))
  bot.on('message:handled', ({ message }) => tell('handled', { prefix, id: message.id }))
  define(bot, sceneOf(cell, obstacle, leaseMs), ROLE === 'b')
  return { bot, provider, obstacle, stop: () => bot.stop() }
}

function obey({ do: what, prefix, message }: Record<string, unknown>): void {
  const player = players.get(String(prefix))
  if (what === 'receive') {
    const arrived = message as { id: string; body: string }
    void player?.provider.receive({ chatId: CHAT_ID, ...arrived }).catch(() => undefined)
  } else if (what === 'let-go') player?.obstacle.remove()
}

/** No process.exit: what ends this process is that nothing is left open. */
async function end(): Promise<void> {
  await Promise.all([...players.values()].map((player) => player.stop()))
  for (const { obstacle } of players.values()) obstacle.remove()
  tell('stopped')
  process.stdin.unref()
}

function ignore(): void {}
