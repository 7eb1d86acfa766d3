/** The kernel decides and does nothing else: no waiting, no time, no chance, no system. */
import ts from 'typescript'
import { lineOf, readImports } from './read.mjs'
import { KERNEL_BANNED_NAMES } from './rooms.mjs'

/**
 * @param {string} path
 * @param {ts.SourceFile} file
 * @returns {import('./check.mjs').Finding[]}
 */
export function checkKernel(path, file) {
  /** @type {import('./check.mjs').Finding[]} */
  const findings = readImports(file)
    .filter(({ specifier }) => specifier.startsWith('node:'))
    .map(({ specifier, line }) => ({
      ...{ file: path, line, rule: `core/kernel imports no system module, not "${specifier}"` },
      fix: 'take what is needed as an argument',
    }))
  /** @param {ts.Node} node */
  const visit = (node) => {
    const found = impurityOf(node)
    if (found !== undefined) findings.push({ file: path, line: lineOf(file, node), ...found })
    ts.forEachChild(node, visit)
  }
  visit(file)
  return findings
}

/**
 * @param {ts.Node} node
 * @returns {{ rule: string, fix: string } | undefined}
 */
function impurityOf(node) {
  if (node.kind === ts.SyntaxKind.AsyncKeyword || ts.isAwaitExpression(node)) {
    return { rule: 'core/kernel is synchronous', fix: 'decide here; loops in runtime/ do the waiting' }
  }
  if (ts.isPropertyAccessExpression(node) && node.getText() === 'Math.random') {
    return { rule: 'core/kernel draws no random numbers', fix: 'take them as arguments' }
  }
  if (!ts.isIdentifier(node) || !Object.hasOwn(KERNEL_BANNED_NAMES, node.text) || isMereName(node))
    return undefined
  return { rule: `core/kernel does not use ${node.text}`, fix: KERNEL_BANNED_NAMES[node.text] ?? '' }
}

/**
 * A name that is not the global: a property, a member, a parameter called so.
 * @param {ts.Identifier} node
 */
function isMereName(node) {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node
  return 'name' in parent && parent.name === node
}
