/** Reads the sample payloads: real-shaped, of made-up people. */
import { readdirSync, readFileSync } from 'node:fs'

const FOLDER = new URL('../src/sample-messages/', import.meta.url)

export const PHONE_NUMBER_ID = '106540352242922'

export const sampleNames = readdirSync(FOLDER).map((file) => file.replace(/\.json$/, ''))

export function sampleText(name: string): string {
  return readFileSync(new URL(`${name}.json`, FOLDER), 'utf8')
}

export function sample(name: string): unknown {
  return JSON.parse(sampleText(name))
}
