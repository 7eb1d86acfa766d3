/**
 * Compiles the blocks of all documents together, as files that exist in memory only. A block is a module: it sees what
 * it imports and declares itself, and what the prelude of its document exports (`preludes/<name>.ts`, else `common.ts`).
 * A block whose first line is `// name.ts` is that file: other blocks of its document import it by `./name.js`; files
 * that no block is are looked for in `preludes/`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import type { Block } from './documents.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PRELUDES = fileURLToPath(new URL('preludes/', import.meta.url))

/** `libs/nestjs/README.md` → `nestjs`; `docs/es/nest.md` and `docs/guides/nest.md` → `nest`. */
export function preludeOf(document: string): string {
  const name = document
    .replace(/\/?README\.md$/, '')
    .replace(/^(docs\/(guides|es)|libs)\//, '')
    .replace(/\.md$/, '')
    .replaceAll('/', '-')
  return SAME[name] ?? (existsSync(`${PRELUDES}${name}.ts`) ? name : 'common')
}

/** Documents that take the same for granted. */
const SAME: Record<string, string> = { nestjs: 'nest' }

const folderOf = (document: string): string => `${PRELUDES}${document.replace(/[./]/g, '-')}/`

function fileOf({ document, n, text }: Block): string {
  const [, name] = /^\/\/ ([\w.-]+\.ts)\n/.exec(text) ?? []
  return `${folderOf(document)}${name ?? `block-${n}.ts`}`
}

/** @returns for each document what the compiler says of its blocks, with lines of the document. */
export function compile(blocks: readonly Block[]): Map<string, string[]> {
  const texts = new Map<string, string>()
  for (const block of blocks) texts.set(fileOf(block), `${importOf(block)}\n${block.text}\nexport {}\n`)
  const program = ts.createProgram([...texts.keys()], options(), hostOf(texts))
  const said = new Map<string, string[]>()
  for (const block of blocks) {
    const file = program.getSourceFile(fileOf(block))
    const lines = said.get(block.document) ?? []
    for (const { start = 0, messageText } of ts.getPreEmitDiagnostics(program, file)) {
      const line = (file?.getLineAndCharacterOfPosition(start).line ?? 0) - 1 + block.line
      lines.push(`${block.document}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`)
    }
    said.set(block.document, lines)
  }
  return said
}

function options(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, (path) => ts.sys.readFile(path)) as {
    config: object
  }
  const parsed = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, ROOT)
  // Readers' own settings need not be ours: `import { X }` may be a type there.
  return { ...parsed.options, verbatimModuleSyntax: false, isolatedModules: false }
}

function hostOf(texts: Map<string, string>): ts.CompilerHost {
  const host = ts.createCompilerHost(options())
  const besides = (path: string) =>
    path.startsWith(PRELUDES) ? path.replace(/\/[^/]+\/([^/]+)$/, '/$1') : path
  host.fileExists = (path) => texts.has(path) || ts.sys.fileExists(path) || ts.sys.fileExists(besides(path))
  host.readFile = (path) => texts.get(path) ?? ts.sys.readFile(path) ?? ts.sys.readFile(besides(path))
  // The folders exist in memory only, too.
  host.directoryExists = (path) => path.startsWith(PRELUDES) || ts.sys.directoryExists(path)
  host.getSourceFile = (path, version) => {
    const text = host.readFile(path)
    return text === undefined ? undefined : ts.createSourceFile(path, text, version, true)
  }
  return host
}

/** Brings what the block takes from its surroundings, without what it has itself. */
function importOf(block: Block): string {
  const prelude = preludeOf(block.document)
  const own = namesOf(ts.createSourceFile('block.ts', block.text, ts.ScriptTarget.ES2022, true), false)
  const text = readFileSync(`${PRELUDES}${prelude}.ts`, 'utf8')
  const names = namesOf(ts.createSourceFile('prelude.ts', text, ts.ScriptTarget.ES2022, true), true)
  return `import { ${[...names].filter((name) => !own.has(name)).join(', ')} } from '../${prelude}.js'`
}

/** Names at the top of a file: declared and imported ones, or exported ones. */
function namesOf(file: ts.SourceFile, exported: boolean): Set<string> {
  const names = new Set<string>()
  const add = (name: ts.Node | undefined): void => {
    if (name === undefined) return
    if (ts.isIdentifier(name)) names.add(name.text)
    else if (ts.isObjectBindingPattern(name) || ts.isArrayBindingPattern(name)) {
      for (const element of name.elements) if (ts.isBindingElement(element)) add(element.name)
    }
  }
  for (const statement of file.statements) {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause } = statement
      if (exported && exportClause !== undefined && ts.isNamedExports(exportClause)) {
        for (const { name } of exportClause.elements) add(name)
      }
    } else if (ts.isImportDeclaration(statement)) {
      const bindings = statement.importClause?.namedBindings
      add(statement.importClause?.name)
      if (!exported && bindings !== undefined && ts.isNamedImports(bindings)) {
        for (const { name } of bindings.elements) add(name)
      }
    } else if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) add(name)
    } else if ('name' in statement) add(statement.name as ts.Node)
  }
  return names
}
