/**
 * A fault at the n-th call that a replica makes while it handles messages: it dies right after the call took effect, or
 * while the request is still on its way and arrives when another replica has taken over, or the reply is lost. Played on any bed, for n = 1, 2, 3, … until nothing is left to go wrong.
 *
 * The user is stubborn: writes, reads, and answers what was asked last, until served. The platform delivers to another
 * replica what was not accepted within a lease. Every text names the message that it is due to, so that a text that
 * comes twice is an effect that happened twice.
 */
import { BotmeshError, SendError, type Bot, type BotConfig, type CoordinationOptions } from '@botmesh/core'
import { CHAT_KEY, type HandoverBed, type Replica } from './bed.js'

export const SUBJECTS = ['flow', 'conversation', 'handler'] as const
export type Subject = (typeof SUBJECTS)[number]
export type Fault = 'crash' | 'crash-in-flight' | 'lose-reply'

export interface FaultCase {
  subject: Subject
  fault: Fault
  durable: boolean
}

export interface FaultOutcome {
  /** Where the fault happened; undefined: there are fewer calls than that. */
  call: string | undefined
  said: string[]
  /** Texts that came more than once. */
  twice: string[]
  /** Messages that nothing was said about. */
  unanswered: string[]
  /** Sends that were reported as uncertain, by whoever. */
  uncertain: number
  /** Reported besides; not that a reply was lost, which is what happened. */
  errors: string[]
  served: boolean
  /** What is left in the store, and of the journal. */
  left: { stored: string; pending: number }
}

interface Order {
  answers: string[]
}

const MOST_MESSAGES = 8
/** Then the dead replica's session has lapsed and the other one is at work, or has been. */
const ARRIVES_AFTER_LEASES = 2.2

/** @param at which call, from 1; calls that only time brings about (heartbeats, sweeps) do not count. */
export async function playFault(bed: HandoverBed, given: FaultCase, at: number): Promise<FaultOutcome> {
  const { subject, fault, durable } = given
  let armed = false
  const options = { define: (bot: Bot) => define(bot, subject), ...optionsOf(bed, durable) }
  const counts = (name: string) => armed && !/heartbeat|openSession|stranded/.test(name)
  const arrive = (request: () => void) => bed.later(ARRIVES_AFTER_LEASES, request)
  const b = await bed.replica('b', options)
  const a = await bed.replica('a', { ...options, faults: { at, what: fault, counts, arrive } })
  armed = true
  const wrote = await write(bed, a, b, subject)
  await bed.pass(4)
  armed = false
  const errors = [...a.errors, ...b.errors]
  const isUncertain = (error: unknown) => error instanceof SendError && error.outcome === 'uncertain'
  const said = bed.said
  return {
    call: a.faults.hit ? a.faults.calls[at - 1] : undefined,
    said,
    twice: said.filter((text, index) => said.indexOf(text) !== index),
    unanswered: wrote.filter((id) => !said.some((text) => text.includes(`(${id})`))),
    uncertain: errors.filter(isUncertain).length,
    errors: errors
      .filter((error) => !isUncertain(error) && !(fault === 'lose-reply' && isOutage(error)))
      .map(String),
    served: isServed(subject, said),
    left: { stored: await bed.stored(CHAT_KEY), pending: durable ? await bed.pending(CHAT_KEY) : 0 },
  }
}

/** With durability: something was lost, done twice or left open. */
export function isWrong(
  { subject }: FaultCase,
  { twice, served, left, unanswered, uncertain }: FaultOutcome,
): boolean {
  const waits = left.stored === 'marker' && subject === 'conversation'
  const open = left.pending > 0 || (left.stored !== 'none' && !waits)
  return twice.length > 0 || !served || open || unanswered.length > uncertain
}

function optionsOf(bed: HandoverBed, durable: boolean) {
  const coordination: Partial<CoordinationOptions> = { handover: { fallback: 'restart' } }
  const config: Partial<BotConfig> = {
    drainMs: bed.leaseMs / 2,
    ...(durable ? { durability: { retryMs: bed.leaseMs / 10 } } : {}),
  }
  return { coordination, config }
}

function define(bot: Bot, subject: Subject): void {
  if (subject === 'flow') {
    bot
      .flow<Order>('order', { on: 'order' })
      .step('size', async (c) => {
        const { id } = await c.askMessage(`Size? (${c.message.id})`)
        c.state.answers = [id]
      })
      .step('colour', async (c) => {
        const { id } = await c.askMessage(`Colour? (${c.message.id})`)
        c.state.answers.push(id)
      })
      .do('end', (c) => c.say(`Done ${c.state.answers.join(' ')} (${c.message.id})`))
      .persistent()
  }
  if (subject === 'conversation') {
    bot.conversation(
      'order',
      async (c) => {
        const size = await c.askMessage(`Size? (${c.message.id})`)
        const colour = await c.askMessage(`Colour? (${c.message.id})`)
        await c.say(`Done ${size.id} ${colour.id} (${c.message.id})`)
      },
      { on: 'order' },
    )
  }
  bot.onMessage((ctx) => ctx.reply(`Heard (${ctx.message.id})`))
}

/** @returns the ids of what the user wrote. */
async function write(bed: HandoverBed, a: Replica, b: Replica, subject: Subject): Promise<string[]> {
  const wrote: string[] = []
  while (wrote.length < MOST_MESSAGES && !isServed(subject, bed.said)) {
    const message = { id: `m${wrote.length + 1}`, body: bodyFor(bed.said.at(-1)) }
    wrote.push(message.id)
    let accepted = false
    const deliver = (to: Replica) =>
      void to.receive(message).then(
        () => (accepted = true),
        () => undefined,
      )
    if (a.faults.alive) {
      deliver(a)
      await bed.pass(1)
    }
    if (!accepted) deliver(b)
    await bed.pass(a.faults.alive ? 0.5 : 2.5)
  }
  return wrote
}

function isOutage(error: unknown): boolean {
  return error instanceof BotmeshError && error.retryable
}

function bodyFor(last: string | undefined): string {
  if (last?.startsWith('Size?')) return 'M'
  return last?.startsWith('Colour?') ? 'red' : 'order'
}

function isServed(subject: Subject, said: readonly string[]): boolean {
  if (subject === 'handler') return said.filter((text) => text.startsWith('Heard')).length >= 3
  return said.some((text) => text.startsWith('Done'))
}
