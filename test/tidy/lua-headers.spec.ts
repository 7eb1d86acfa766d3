/**
 * Each Lua file says at its top what it is for, what it takes, what it answers and which invariants it keeps; and
 * the manifest that the TypeScript side is typed from names exactly the files that are there.
 */
import { posix } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { paths, read } from './sources.js'

const MANIFEST = 'libs/redis-store/src/scripts.ts'

interface Lua {
  path: string
  name: string
  header: string
  body: string
}

function load(path: string): Lua {
  const lines = read(path).split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  const name = posix.basename(path, '.lua')
  return { path, name, header: lines.slice(0, end).join('\n'), body: lines.slice(end).join('\n') }
}

const all = paths.filter((path) => path.endsWith('.lua')).map(load)

/** What the manifest lists as scripts of one file; all others are parts of the batch script. */
const plain = /PLAIN_SCRIPTS = \[([^\]]*)\]/.exec(read(MANIFEST))?.[1] ?? ''
const isPlain = ({ name }: Lua) => plain.includes(`'${name}'`)
/** Parts that are no transition: they share the header of the first part. */
const isFrame = ({ name, header }: Lua) =>
  name !== 'batch-context' && (name.startsWith('batch-') || /as batch-context says/.test(header))

/**
 * Positions that a header names after `KEYS` or `ARGV`: `1 base  2 'list' or …`, also on the lines below. A range
 * such as `8 ... 7+count` leaves the rest open.
 */
function positions(kind: 'KEYS' | 'ARGV', header: string): { known: number[]; openFrom: number } {
  const known: number[] = []
  let openFrom = Infinity
  let inside = false
  for (const line of header.split('\n')) {
    const word = /^--\s+(KEYS|ARGV)\b/.exec(line)?.[1]
    if (word !== undefined) inside = word === kind
    else if (!/^--\s{3,}/.test(line)) inside = false
    if (!inside) continue
    for (const [, n] of line.matchAll(/(?:^--\s+|KEYS\s+|ARGV\s+|:\s|\s\s)(\d+)\s/g)) known.push(Number(n))
    const [, from] = /(\d+) \.\.\./.exec(line) ?? []
    if (from !== undefined) openFrom = Math.min(openFrom, Number(from))
  }
  return { known, openFrom }
}

describe('Lua files', () => {
  it('are those of the manifest', () => {
    const listed = [...read(MANIFEST).matchAll(/'([a-z]+(?:-[a-z]+)*)'/g)].map(([, name]) => name)
    expect(all.filter(({ name }) => !listed.includes(name)).map(({ path }) => path)).toEqual([])
    const lists = [...read(MANIFEST).matchAll(/(?:PARTS|SCRIPTS) = \[([^\]]*)\]/g)].map(
      ([, list = '']) => list,
    )
    const named = lists.flatMap((list) => [...list.matchAll(/'([^']+)'/g)].map(([, name]) => name))
    expect(named.filter((name) => !all.some((one) => one.name === name))).toEqual([])
  })

  it('begin with their name and purpose', () => {
    const bare = all.filter(({ name, header }) => {
      const [first = ''] = header.split('\n')
      return !first.startsWith(`-- ${name}: `) || first.split(' ').length < 6
    })
    expect(bare.map(({ path }) => path)).toEqual([])
  })

  it('say what they answer, and which invariants they keep', () => {
    const silent = all.filter((one) => {
      const answers =
        /\bRepl(y|ies)\b/.test(one.header) || one.name === 'grant-rule' || one.name === 'chat-state'
      return !isFrame(one) && !(answers && /\bInvariants?\b/.test(one.header))
    })
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  it('name each key and argument that they use by its number', () => {
    const batch = all.find(({ name }) => name === 'batch-context')?.header ?? ''
    const unnamed = all.flatMap((one) =>
      (['KEYS', 'ARGV'] as const).flatMap((kind) => {
        const { known, openFrom } = positions(kind, isPlain(one) ? one.header : batch)
        const used = [...one.body.matchAll(new RegExp(`${kind}\\[(\\d+)\\]`, 'g'))].map(([, n]) => Number(n))
        return used.filter((n) => !known.includes(n) && n < openFrom).map((n) => `${one.path}: ${kind}[${n}]`)
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
