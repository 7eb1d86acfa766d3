/**
 * The names of all tests, read from the syntax trees of spec files and of the conformance suites that core exports.
 * A name is that of the `it` with those of the `describe`s round it.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { parse } from './imports/read.mjs'
import { trackedFiles } from './project-files.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TESTS = /[.-]spec\.ts$|^libs\/core\/src\/testing\/.*\.ts$|(^|\/)test\/.*suite[^/]*\.ts$/

/** @returns {Array<{ file: string, name: string }>} */
export function testNames() {
  return trackedFiles()
    .filter((path) => TESTS.test(path))
    .flatMap((file) =>
      namesIn(parse(file, readFileSync(`${ROOT}${file}`, 'utf8'))).map((name) => ({ file, name })),
    )
}

/**
 * @param {ts.SourceFile} file
 * @returns {string[]}
 */
export function namesIn(file) {
  /** @type {string[]} */
  const names = []
  /**
   * @param {ts.Node} node
   * @param {string[]} path
   * @returns {void}
   */
  const visit = (node, path) => {
    const call = testCall(node)
    const inner = call?.kind === 'describe' ? [...path, call.title] : path
    if (call?.kind === 'it') names.push(...call.rows.map((title) => [...path, title].join(' › ')))
    else if (isNamedCase(node)) names.push([...path, node.initializer.text].join(' › '))
    ts.forEachChild(node, (child) => visit(child, inner))
  }
  visit(file, [])
  return names
}

/**
 * A case of a suite that is a value: `{ name: 'T1: …', run: async () => … }`.
 * @param {ts.Node} node
 * @returns {node is ts.PropertyAssignment & { initializer: ts.StringLiteralLike }}
 */
function isNamedCase(node) {
  return (
    ts.isPropertyAssignment(node) &&
    /^(name|title)$/.test(node.name.getText()) &&
    ts.isStringLiteralLike(node.initializer) &&
    node.parent.properties.some((one) => one.name !== undefined && /^(run|test|fn)$/.test(one.name.getText()))
  )
}

/**
 * `it('…')`, `describe('…')`, `it.each([['…', …]])('… %s', …)`, also as methods of a framework that is passed in.
 * @param {ts.Node} node
 * @returns {{ kind: 'describe' | 'it', title: string, rows: string[] } | undefined}
 */
function testCall(node) {
  if (!ts.isCallExpression(node)) return undefined
  const [first] = node.arguments
  const title = first === undefined ? undefined : textOf(first)
  const kind = /(?:^|\.)(describe|it|test)(\.each\b|\.concurrent\b|$)/.exec(calleeOf(node))?.[1]
  if (title === undefined || kind === undefined || node.arguments.length < 2) return undefined
  const rows = rowsOf(node.expression).map((row) => title.replace(/%s|%p|%j/, row))
  return { kind: kind === 'describe' ? kind : 'it', title, rows: rows.length > 0 ? rows : [title] }
}

/** @param {ts.CallExpression} call */
function calleeOf(call) {
  const { expression } = call
  // With a table the callee is itself a call.
  return ts.isCallExpression(expression) ? expression.expression.getText() : expression.getText()
}

/**
 * The first text of each row of an `.each` table.
 * @param {ts.Expression} callee
 */
function rowsOf(callee) {
  const table = ts.isCallExpression(callee) ? callee.arguments[0] : undefined
  if (table === undefined || !ts.isArrayLiteralExpression(table)) return []
  return table.elements.flatMap((row) => {
    const cell = ts.isArrayLiteralExpression(row) ? row.elements[0] : row
    const text = cell === undefined ? undefined : textOf(cell)
    return text === undefined ? [] : [text]
  })
}

/** @param {ts.Expression} node */
function textOf(node) {
  if (ts.isStringLiteralLike(node)) return node.text
  return ts.isTemplateExpression(node) ? node.getText().slice(1, -1) : undefined
}

/**
 * What a test's name cites: `T1`, `scenario 9`.
 * @param {string} name
 * @returns {string[]}
 */
export function citedBy(name) {
  const ids = [...name.matchAll(/\b([A-Z]\d{1,2})(?:[-–]([A-Z])?(\d{1,2}))?\b/g)].flatMap(
    ([, first = '', , last]) => range(first.slice(1), last).map((n) => `${first[0]}${n}`),
  )
  const scenarios = [...name.matchAll(/\bscenarios? ((?:\d+(?:[-–]\d+)?(?:, | and |,)?)+)/gi)].flatMap(
    ([, list = '']) =>
      [...list.matchAll(/(\d+)(?:[-–](\d+))?/g)].flatMap(([, first = '', last]) => range(first, last)),
  )
  return [...new Set([...ids, ...scenarios.map((n) => `scenario ${n}`)])]
}

/**
 * @param {string} first
 * @param {string | undefined} last
 */
function range(first, last) {
  const from = Number(first)
  const to = last === undefined ? from : Number(last)
  return Array.from({ length: Math.max(0, to - from) + 1 }, (_, index) => from + index)
}
