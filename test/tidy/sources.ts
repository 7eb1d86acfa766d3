/** The project's files as the tidy tests look at them. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { parse } from '../../tools/imports/read.mjs'
import { trackedFiles } from '../../tools/project-files.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const paths: readonly string[] = trackedFiles()

export function read(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8')
}

/** Everything written in TypeScript or JavaScript. */
export const code = paths.filter((path) => /\.(ts|mjs|js)$/.test(path) && !path.endsWith('.d.ts'))

/** Tests, the exported suites of tests among them, and what only tests use. */
export const isTest = (path: string): boolean => /(^|\/)test\/|([.-]spec|\.suite)\.ts$/.test(path)

/** What is shipped: sources of packages and applications. */
export const shipped = code.filter((path) => /^(libs|apps)\/[^/]+\/src\//.test(path))

export interface Found {
  path: string
  line: number
  what: string
}

/** Collects what `look` finds in the syntax trees of these files. */
export function search(
  files: readonly string[],
  look: (node: ts.Node, file: ts.SourceFile) => string | undefined,
): Found[] {
  const found: Found[] = []
  for (const path of files) {
    const file = parse(path, read(path))
    const visit = (node: ts.Node): void => {
      const what = look(node, file)
      if (what !== undefined) found.push({ path, line: lineOf(file, node), what })
      ts.forEachChild(node, visit)
    }
    visit(file)
  }
  return found
}

export function lineOf(file: ts.SourceFile, node: ts.Node): number {
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
}

/** For messages: `file:line what`. */
export const show = ({ path, line, what }: Found): string => `${path}:${line} ${what}`

/** Reads the list of exceptions, each with its reason. */
export function exceptions<T>(list: string): Record<string, T> {
  const all = JSON.parse(read('test/tidy/exceptions.json')) as Record<string, Record<string, T>>
  return all[list] ?? {}
}
