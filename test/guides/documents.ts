/** The documents that people read, and their fenced blocks. */
import { paths, read } from '../tidy/sources.js'

export interface Block {
  document: string
  /** Its number in the document, from 1. */
  n: number
  /** Line of its first line, from 1. */
  line: number
  language: string
  text: string
}

/** README, guides in both languages, architecture, READMEs of packages, applications and examples. */
export const documents = paths.filter(
  (path) =>
    /^(README|docs\/.*|(libs|apps|examples)\/.*README|examples\/README)(\.md)$/.test(path) &&
    !/^docs\/(reference|adr)\//.test(path),
)

export function blocksOf(document: string): Block[] {
  const blocks: Block[] = []
  let open: Block | null = null
  for (const [index, line] of read(document).split('\n').entries()) {
    const fence = /^\s*```(\w*)/.exec(line)
    if (fence === null) {
      if (open !== null) open.text += `${line}\n`
    } else if (open === null) {
      open = { document, n: blocks.length + 1, line: index + 2, language: fence[1] ?? '', text: '' }
    } else {
      blocks.push(open)
      open = null
    }
  }
  if (open !== null) throw new Error(`${document}:${open.line} a block that nothing ends`)
  return blocks
}

/** The file that a block quotes: its first line is `// path`, from the root of the project. */
export function quotedBy({ text }: Block): { file: string; quotation: string } | null {
  const [first = '', ...rest] = text.split('\n')
  const [, file] = /^\/\/ ([\w./-]+\.ts)$/.exec(first) ?? []
  return file !== undefined && paths.includes(file) ? { file, quotation: rest.join('\n') } : null
}

/** The formatter breaks lines by their indentation, which differs. */
export const tight = (text: string): string => text.replace(/\s+/g, '').replace(/,([)\]}])/g, '$1')
