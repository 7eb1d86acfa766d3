/** Reads the recorded webhook bodies; see make-webhooks.ts for their form. */
import { readFile } from 'node:fs/promises'

export type Platform = 'whatsapp' | 'telegram'

export interface Delivery {
  platform: Platform
  /** What the platform posts, byte for byte the same at every attempt. */
  body: string
  twice: boolean
  burst: boolean
  expects: { chat: string; says: string[] }[]
}

/** A line of the file. */
interface Line {
  platform: Platform
  body: object
  twice?: boolean
  burst?: boolean
  expects: Delivery['expects']
}

export async function readStory(): Promise<Delivery[]> {
  const text = await readFile(new URL('./webhooks.jsonl', import.meta.url), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { body, twice = false, burst = false, platform, expects } = JSON.parse(line) as Line
      return { platform, expects, twice, burst, body: JSON.stringify(body) }
    })
}
