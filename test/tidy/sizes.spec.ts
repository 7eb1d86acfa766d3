/**
 * A ratchet: files of about 300 lines, functions of about 40. What is over stands in exceptions.json with its
 * size and its reason; it may shrink, and then its entry shrinks with it, but never grow.
 */
import { describe, expect, it } from '@jest/globals'
import ts from 'typescript'
import { parse } from '../../tools/imports/read.mjs'
import { code, exceptions, isTest, read } from './sources.js'

const FILE_LINES = 300
const SPEC_LINES = 400
const HARD_LIMIT = 400
const FUNCTION_LINES = 40
/** Entries follow a file that shrinks, but not line by line. */
const SLACK = 5

const isSpec = (path: string) => /([.-]spec|\.suite)\.ts$/.test(path)

interface Oversize {
  max: number
  why: string
}

/** What to do about sizes that differ from what is allowed; empty if nothing. */
function ratchet(list: string, sizes: Map<string, number>): string[] {
  const allowed = exceptions<Oversize>(list)
  const advice: string[] = []
  for (const [what, size] of sizes) {
    const exception = allowed[what]
    if (exception === undefined)
      advice.push(`${what} has ${size} lines: split it by what its parts are about`)
    else if (size > exception.max)
      advice.push(`${what} grew from ${exception.max} to ${size} lines: split it`)
    else if (size < exception.max - SLACK)
      advice.push(`${what} shrank to ${size} lines: lower its "max" in exceptions.json`)
  }
  for (const [what, { why }] of Object.entries(allowed)) {
    if (!sizes.has(what)) advice.push(`${what} is within the limit now: remove it from exceptions.json`)
    if (why.length < 15) advice.push(`${what}: say why in exceptions.json`)
  }
  return advice
}

describe('sizes', () => {
  it('of files', () => {
    const sizes = new Map<string, number>()
    for (const path of code) {
      const lines = read(path).split('\n').length - 1
      if (lines > (isSpec(path) ? SPEC_LINES : FILE_LINES)) sizes.set(path, lines)
    }
    expect(ratchet('fileLines', sizes)).toEqual([])
    expect([...sizes].filter(([path, lines]) => lines > HARD_LIMIT && !isSpec(path))).toEqual([])
  })

  it('of functions', () => {
    const sizes = new Map<string, number>()
    for (const path of code.filter((one) => !isTest(one))) {
      for (const [name, lines] of functionsOf(path))
        if (lines > FUNCTION_LINES) sizes.set(`${path}#${name}`, lines)
    }
    expect(ratchet('functionLines', sizes)).toEqual([])
  })
})

/** Functions with a name of some kind and their lines of code: no blank lines, no lines of comment. */
function functionsOf(path: string): Array<[string, number]> {
  const file = parse(path, read(path))
  const functions: Array<[string, number]> = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      functions.push([nameOf(node), linesOfCode(node.getText(file))])
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return functions
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) return classPrefix(node) + node.name.getText()
  const { parent } = node
  if (ts.isConstructorDeclaration(node)) return `${classPrefix(node)}constructor`
  return 'name' in parent && parent.name !== undefined ? (parent.name as ts.Node).getText() : 'anonymous'
}

function classPrefix(node: ts.Node): string {
  return ts.isClassLike(node.parent) ? `${node.parent.name?.text ?? 'class'}.` : ''
}

function linesOfCode(text: string): number {
  const bare = text.replace(/\/\*[\s\S]*?\*\//g, '')
  return bare.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length
}
