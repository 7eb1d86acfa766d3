/**
 * The code blocks of the page that describes the behaviour. The page is no part of the project: it lies beside the
 * checkout where the project is developed and checked, and is absent elsewhere.
 */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const PAGE = new URL('../../../shared/spec/replicas.es.txt', import.meta.url)

export interface Block {
  /** Its number on the page, from 1. */
  n: number
  language: 'ts' | 'yaml'
  text: string
}

const FIRST_LINE = /^(import \{|const \w+ =|bot\.\w+\(|services:)/
const CODE_LINE = /^(import \{|const |await |bot\.|services:|[\s})\]]|$)/

/** @returns the blocks in order, each as it stands there; null where there is no page. */
export function pageBlocks(): Block[] | null {
  if (!existsSync(PAGE)) return null
  const blocks: Block[] = []
  let lines: string[] = []
  const end = () => {
    const text = lines.join('\n').trimEnd()
    if (text !== '')
      blocks.push({ n: blocks.length + 1, language: /^\w+:$/m.test(text) ? 'yaml' : 'ts', text })
    lines = []
  }
  for (const line of readFileSync(fileURLToPath(PAGE), 'utf8').split('\n')) {
    const belongs = lines.length > 0 ? CODE_LINE.test(line) : FIRST_LINE.test(line)
    if (belongs) lines.push(line)
    else end()
  }
  end()
  return blocks
}
