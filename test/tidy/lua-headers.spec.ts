/**
 * Each Lua file says at its top what it is for, what it takes, what it answers and which invariants it keeps, and
 * what the TypeScript side runs is what is there.
 */
import { describe, expect, it } from '@jest/globals'
import { paths, read } from './sources.js'

const scripts = paths.filter((path) => path.endsWith('.lua'))

interface Lua {
  path: string
  name: string
  header: string
  body: string
}

function load(path: string): Lua {
  const lines = read(path).split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  const name = path.slice(path.lastIndexOf('/') + 1, -'.lua'.length)
  return { path, name, header: lines.slice(0, end).join('\n'), body: lines.slice(end).join('\n') }
}

const all = scripts.map(load)

/** Frames that single transitions are put into: they share the header of the first part, `…-context`. */
const frames = all
  .filter(({ name }) => name.endsWith('-context'))
  .map(({ name }) => name.slice(0, -'context'.length))
const isLaterPart = ({ name }: Lua) =>
  frames.some((frame) => name.startsWith(frame)) && !name.endsWith('-context')

/** Positions that a header names after `KEYS` or `ARGV`: `KEYS  1 floor`, and lines below that go on with a number. */
function positions(kind: 'KEYS' | 'ARGV', header: string): number[] {
  const found: number[] = []
  let inside = false
  for (const line of header.split('\n')) {
    const [, word, number] = /^--\s+(?:(KEYS|ARGV)\s+)?(\d+)?/.exec(line) ?? []
    if (word !== undefined) inside = word === kind
    else if (number === undefined) inside = false
    if (inside && number !== undefined) found.push(Number(number))
  }
  return found
}

describe('Lua files', () => {
  it('begin with their name and purpose, and name their invariants', () => {
    const bare = all.filter(({ name, header }) => {
      const [first = ''] = header.split('\n')
      return !first.startsWith(`-- ${name}: `) || first.split(' ').length < 6
    })
    expect(bare.map(({ path }) => path)).toEqual([])
    const keepers = all.filter((one) => !isLaterPart(one) && !/Invariants?\b/.test(one.header))
    expect(keepers.map(({ path }) => path)).toEqual([])
  })

  it('say what they answer', () => {
    const silent = all.filter((one) => /^return\b/m.test(one.body) && !/Repl(y|ies)/.test(one.header))
    expect(silent.filter((one) => !isLaterPart(one)).map(({ path }) => path)).toEqual([])
  })

  it('name each key and argument that they use by its number', () => {
    // Parts of one script share the header of its first part.
    const shared = all.filter(({ name }) => name.endsWith('-context')).map(({ header }) => header)
    const unnamed = all.flatMap(({ path, header, body }) =>
      (['KEYS', 'ARGV'] as const).flatMap((kind) => {
        const known = [header, ...shared].flatMap((one) => positions(kind, one))
        const used = [...body.matchAll(new RegExp(`${kind}\\[(\\d+)\\]`, 'g'))].map(([, n]) => Number(n))
        return used.filter((n) => !known.includes(n)).map((n) => `${path}: ${kind}[${n}]`)
      }),
    )
    expect(unnamed).toEqual([])
  })

  it('cite invariants that docs/invariants.md has', () => {
    const known = new Set(read('docs/invariants.md').match(/\bI\d+\b/g))
    const cited = all.flatMap(({ path, header }) =>
      (header.match(/\bI\d+\b/g) ?? []).map((id) => ({ path, id })),
    )
    expect(cited.filter(({ id }) => !known.has(id))).toEqual([])
  })
})
