/**
 * A chat that floods beside chats that do not (scenario 35): what is accepted and refused, how long the others wait, and
 * what of it all stays in memory.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { setTimeout as delay } from 'node:timers/promises'
import { Bot, type BotConfig, type CoordinationUnavailableError } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'

export interface FloodSeen {
  sent: number
  /** Of the flood, in the order in which they were handed in. */
  accepted: string[]
  handled: string[]
  /** As `error` events told it. */
  told: { reports: number; refused: number; other: string[] }
  /** Longest time from arrival to answer in the other chats. */
  othersMs: number
  others: number
  /** Heap in use while it floods, after a collection, from the first second's end on. */
  heapBytes: number[]
}

const PER_SECOND = 1000
const EVERY_MS = 10
/** A large text, so that what is kept shows. */
const BODY = 10_000
const WORK_MS = 5
export const LIMIT = 200

export async function flood(
  config: Pick<BotConfig, 'store' | 'coordination' | 'durability'>,
  seconds: number,
): Promise<FloodSeen> {
  const provider = new FakeProvider({ id: 'line:flood' })
  const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }
  const bot = new Bot({ ...config, provider, logger, maxWaitingPerChat: LIMIT })
  const seen: FloodSeen = {
    ...{ sent: 0, accepted: [], handled: [], othersMs: 0, others: 0, heapBytes: [] },
    told: { reports: 0, refused: 0, other: [] },
  }
  const beganAt = new Map<string, number>()
  bot.on('error', ({ error }) => {
    const { details } = error as CoordinationUnavailableError
    if (details?.why !== 'overflow') return void seen.told.other.push(String(error))
    seen.told.reports += 1
    seen.told.refused += details.refused ?? 1
  })
  bot.onMessage(async (ctx) => {
    if (ctx.chatId === 'flood') {
      seen.handled.push(ctx.message.id)
      return void (await delay(WORK_MS))
    }
    seen.others += 1
    seen.othersMs = Math.max(seen.othersMs, performance.now() - (beganAt.get(ctx.message.id) ?? 0))
  })
  await bot.start()
  await pour(provider, seen, beganAt, seconds)
  while (bot.health().inFlight > 0) await delay(EVERY_MS)
  await bot.stop()
  return seen
}

async function pour(
  provider: FakeProvider,
  seen: FloodSeen,
  beganAt: Map<string, number>,
  seconds: number,
): Promise<void> {
  // Counted, not kept: promises would be the larger part of what grows, most of all after other tests in this process.
  let [given, open] = [0, 0]
  const hand = (message: Parameters<FakeProvider['receive']>[0]): Promise<unknown> => {
    given += 1
    open += 1
    return provider.receive(message).finally(() => (open -= 1))
  }
  const settled = async (): Promise<void> => {
    while (open > 0) await delay(EVERY_MS)
  }
  const pourUntil = (ms: number): void => {
    for (; seen.sent < (ms / 1000) * PER_SECOND; seen.sent += 1) {
      const id = `f${seen.sent}`
      const body = `${id} ${'x'.repeat(BODY)}`
      const accepted = () => void seen.accepted.push(id)
      hand({ id, chatId: 'flood', body }).then(accepted, ignore)
    }
  }
  const began = performance.now()
  for (let now = 0, measured = 0; now < seconds * 1000; now = performance.now() - began) {
    // By the clock: a busy machine gets more at a time.
    pourUntil(now)
    const id = `o${given}`
    beganAt.set(id, performance.now())
    void hand({ id, chatId: `other-${id}`, body: 'hi' })
    if (now > 1000 * (measured + 1)) {
      measured += 1
      // What was handed in a moment ago is the sender's until it is accepted or refused.
      await settled()
      seen.heapBytes.push(heapInUse())
    }
    await delay(EVERY_MS)
  }
  // What a machine that stood still at the end owes.
  pourUntil(seconds * 1000)
  await settled()
}

let collect: (() => void) | undefined

function heapInUse(): number {
  setFlagsFromString('--expose-gc')
  collect ??= runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}

function ignore(): void {}
