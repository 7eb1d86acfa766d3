/** Every code block of the page compiles, as it stands there, under `strict`. */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { pageBlocks, type Block } from './page-blocks.js'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const AMBIENT_FILE = `${HERE}page-ambient.ts`
/** What the blocks take from their surroundings, so that none is changed. In memory only: its names are global. */
const AMBIENT = `
import type { Bot as BotClass, Coordinator, Provider } from '@botmesh/core'
import type { RedisStore } from '@botmesh/redis-store'
declare global {
  const Bot: typeof BotClass
  const bot: BotClass
  const provider: Provider
  const pa: Provider
  const pb: Provider
  const store: RedisStore
  const coordinator: Coordinator
  const log: { info(fields: object, text: string): void; warn(fields: object, text: string): void }
  function enviarInforme(): Promise<void>
}`

const blocks = pageBlocks()
const code = (blocks ?? []).filter(({ language }) => language === 'ts')
const fileOf = ({ n }: Block) => `${HERE}page-block-${n}.ts`

/** Compiles the blocks together, as files that exist in memory only. */
function compile(): ts.Program {
  const base = ts.readConfigFile(fileURLToPath(new URL('../../tsconfig.json', import.meta.url)), (path) =>
    ts.sys.readFile(path),
  )
  const config = { ...base.config, include: [], files: [] }
  const { options } = ts.parseJsonConfigFileContent(
    config,
    ts.sys,
    fileURLToPath(new URL('../..', import.meta.url)),
  )
  expect(options.strict).toBe(true)
  const host = ts.createCompilerHost(options)
  // `export {}` makes a module of a block without imports: its constants are its own.
  const texts = new Map(code.map((block) => [fileOf(block), `${block.text}\nexport {}\n`]))
  texts.set(AMBIENT_FILE, AMBIENT)
  host.fileExists = (path) => texts.has(path) || ts.sys.fileExists(path)
  host.readFile = (path) => texts.get(path) ?? ts.sys.readFile(path)
  host.getSourceFile = (path, version) => {
    const text = host.readFile(path)
    return text === undefined ? undefined : ts.createSourceFile(path, text, version)
  }
  return ts.createProgram([...texts.keys()], options, host)
}

function messagesOf(program: ts.Program, path: string): string[] {
  const file = program.getSourceFile(path)
  return ts.getPreEmitDiagnostics(program, file).map(({ start = 0, messageText }) => {
    const line = (file?.getLineAndCharacterOfPosition(start).line ?? 0) + 1
    return `line ${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
}

if (blocks === null) {
  describe('the page', () => {
    it('is not beside this checkout: its code blocks cannot be checked here', () => {
      expect(blocks).toBeNull()
    })
  })
} else {
  describe('the page', () => {
    let program: ts.Program
    beforeAll(() => {
      program = compile()
    }, 60_000)

    it('has five blocks of TypeScript and one of YAML', () => {
      expect(blocks.map(({ language }) => language)).toEqual(['ts', 'ts', 'ts', 'ts', 'yaml', 'ts'])
    })

    it('finds around its blocks what they take for granted', () => {
      expect(messagesOf(program, AMBIENT_FILE)).toEqual([])
    })

    it.each(code.map((block) => [block.n, block] as const))('block %i compiles as it stands', (_n, block) => {
      expect(program.getSourceFile(fileOf(block))?.text.startsWith(block.text)).toBe(true)
      expect(messagesOf(program, fileOf(block))).toEqual([])
    })
  })
}
