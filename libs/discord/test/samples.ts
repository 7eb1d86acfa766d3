/** Reads the sample events: real-shaped, of made-up people. */
import { readdirSync, readFileSync } from 'node:fs'
import type { Message } from '@botmesh/core'
import { parseInbound, type DiscordEvent, type InboundContext } from '@botmesh/discord'
import { BOT_ID } from '../../../test/doubles/discord/index.js'

const FOLDER = new URL('../src/sample-messages/', import.meta.url)

export interface SampleEvent {
  op: 0
  t: string
  s: number
  d: Record<string, unknown>
}

export const CONTEXT: InboundContext = { botId: BOT_ID, listen: 'all', bots: 'ignore' }
export const sampleNames = readdirSync(FOLDER).map((file) => file.replace(/\.json$/, ''))

const texts = new Map(
  sampleNames.map((name) => [name, readFileSync(new URL(`${name}.json`, FOLDER), 'utf8')]),
)

export function sampleText(name: string): string {
  return texts.get(name) ?? ''
}

export function sample(name: string): SampleEvent {
  return JSON.parse(sampleText(name)) as SampleEvent
}

export function parse(name: string, context: Partial<InboundContext> = {}): DiscordEvent {
  const { t, d } = sample(name)
  return parseInbound(t, d, { ...CONTEXT, ...context })
}

/** The only message of a sample. */
export function only(event: DiscordEvent): Message {
  if (event.kind === 'ignored') throw new Error(`ignored: ${event.reason}`)
  const [message, second] = event.messages
  if (message === undefined || second !== undefined) throw new Error('not one message')
  return message
}
