/** Habits of the code that neither the compiler nor the linter watches. */
import { describe, expect, it } from '@jest/globals'
import ts from 'typescript'
import { code, exceptions, isTest, paths, read, search, shipped, show, type Found } from './sources.js'

/** Leaves out what exceptions.json names by file, and complains about exceptions that nothing needs. */
function without(list: string, found: Found[]): string[] {
  const reasons = exceptions<string>(list)
  const unused = Object.keys(reasons).filter((path) => !found.some((one) => one.path === path))
  return [
    ...found.filter(({ path }) => reasons[path] === undefined).map(show),
    ...unused.map((path) => `exceptions.json: "${list}" has no need of ${path} any more`),
  ]
}

describe('habits', () => {
  it('every test runs: none is skipped, left to do, or alone', () => {
    const found = search(
      code.filter((path) => path.endsWith('.ts')),
      (node) => {
        if (ts.isPropertyAccessExpression(node) && /^(describe|it|test)$/.test(rootOf(node))) {
          return /^(skip|todo|only|failing)$/.test(node.name.text) ? node.getText() : undefined
        }
        if (!ts.isCallExpression(node) || !ts.isIdentifier(node.expression)) return undefined
        return /^(x|f)(describe|it|test)$/.test(node.expression.text) ? node.expression.text : undefined
      },
    )
    expect(found.map(show)).toEqual([])
  })

  it('whoever silences a check says why, there or in a comment just above', () => {
    const silenced =
      /(oxlint-disable|eslint-disable|@ts-ignore|@ts-expect-error|@ts-nocheck|prettier-ignore|c8 ignore)(.*)/
    const reasonAbove = /^\s*(\/\/|\*|\/\*\*)(?!.*-disable).* \S+ \S+/
    const found: string[] = []
    for (const path of code.filter((one) => one !== 'test/tidy/habits.spec.ts')) {
      const lines = read(path).split('\n')
      for (const [index, line] of lines.entries()) {
        const [, what, rest = ''] = silenced.exec(line) ?? []
        if (what === undefined || /(--|:) *\S+ \S+/.test(rest)) continue
        const above = lines.slice(Math.max(0, index - 4), index)
        if (!above.some((one) => reasonAbove.test(one))) found.push(`${path}:${index + 1} ${what}`)
      }
    }
    expect(found).toEqual([])
  })

  it('time and chance are passed in', () => {
    const watched = shipped.filter((path) => !/system-clock\.ts$|\/testing\//.test(path))
    expect(without('timeAndChance', search(watched, timeOrChance))).toEqual([])
  })

  it('names are those of the glossary', () => {
    const found = search(shipped, (node) => {
      const name = declaredName(node)
      return name === undefined ? undefined : bannedName(name)
    })
    const files = paths
      .filter((path) => /^(libs|apps)\/[^/]+\/src\//.test(path))
      .flatMap((path) => {
        const what = bannedName(path.slice(path.lastIndexOf('/') + 1).replace(/\.[a-z]+$/, ''))
        return what === undefined ? [] : [{ path, line: 1, what }]
      })
    expect(without('names', [...found, ...files])).toEqual([])
  })

  it('each file of code says at its top what it is', () => {
    const bare = code.filter(
      (path) => !/^\s*(#!.*\n|\/\*\* @jest-config-loader.*\n)?\s*(\/\*\*|\/\/)/.test(read(path)),
    )
    expect(bare.filter((path) => !isTest(path) || /[.-]spec\.ts$/.test(path))).toEqual([])
  })
})

function rootOf(node: ts.Expression): string {
  if (ts.isPropertyAccessExpression(node)) return rootOf(node.expression)
  return ts.isIdentifier(node) ? node.text : ''
}

const TIMERS = new Set(['setTimeout', 'setInterval', 'setImmediate'])

function timeOrChance(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node)) {
    const text = node.getText()
    return /^(globalThis\.)?(Date\.now|Math\.random|performance\.now|process\.hrtime)$/.test(text)
      ? text
      : undefined
  }
  if (ts.isImportDeclaration(node)) return /node:timers/.exec(node.moduleSpecifier.getText())?.[0]
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date') {
    return (node.arguments?.length ?? 0) === 0 ? 'new Date()' : undefined
  }
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
    return TIMERS.has(node.expression.text) ? node.expression.text : undefined
  }
  return undefined
}

function declaredName(node: ts.Node): string | undefined {
  const declares =
    ts.isClassLike(node) ||
    ts.isFunctionLike(node) ||
    ts.isVariableDeclaration(node) ||
    ts.isParameter(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertySignature(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node)
  return declares && node.name !== undefined && ts.isIdentifier(node.name) ? node.name.text : undefined
}

const BANNED = new Set([
  'master',
  'slave',
  'worker',
  'node',
  'adapter',
  'manager',
  'helper',
  'helpers',
  'util',
  'utils',
])
const BANNED_PAIRS = [
  ['fence', 'token'],
  ['fence', 'version'],
  ['fencing', 'token'],
  ['turn', 'lock'],
  ['chat', 'lock'],
  ['turn', 'token'],
]

function bannedName(name: string): string | undefined {
  const words = name.split(/(?<=[a-z0-9])(?=[A-Z])|[-_.]/).map((word) => word.toLowerCase())
  const word = words.find((one) => BANNED.has(one))
  if (word !== undefined)
    return `"${name}": "${word}" says nothing here; name it by what it does (docs/glossary.md)`
  const pair = BANNED_PAIRS.find((both) => both.every((one) => words.includes(one)))
  return pair === undefined
    ? undefined
    : `"${name}": ${pair.join(' and ')} are not one thing (docs/glossary.md)`
}
