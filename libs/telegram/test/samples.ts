/** Reads the sample updates: real-shaped, of made-up people. */
import { readdirSync, readFileSync } from 'node:fs'

const FOLDER = new URL('../src/sample-messages/', import.meta.url)

/** Token of the bot that the samples were written to. */
export const TOKEN = '123456789:AAsecretTokenOfTheTests'
export const BOT_ID = 123456789

export const sampleNames = readdirSync(FOLDER).map((file) => file.replace(/\.json$/, ''))

export function sampleText(name: string): string {
  return readFileSync(new URL(`${name}.json`, FOLDER), 'utf8')
}

export function sample(name: string): Record<string, unknown> {
  return JSON.parse(sampleText(name)) as Record<string, unknown>
}
