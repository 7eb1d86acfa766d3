/**
 * The project stands alone: nothing in it depends on, or tells of, the machine and the place it was made in. What
 * names such a place cannot stand here: it is taken from the place itself (this checkout's path, the home folder, the
 * registry that npm is set to), and from a file outside the project if there is one, `BOTMESH_TRACES` or
 * `traces.txt` beside the checkout: a regular expression a line.
 */
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from '@jest/globals'
import { paths, read } from './sources.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const text = paths.filter((path) => !/\.(png|jpg|gif|ico|woff2?|gz)$/.test(path))

function findings(pattern: RegExp, files = text): string[] {
  return files.flatMap((path) => findingsIn(pattern, read(path)).map((found) => `${path}:${found}`))
}

function findingsIn(pattern: RegExp, content: string): string[] {
  return content.split('\n').flatMap((line, index) => {
    const [found] = pattern.exec(line) ?? []
    return found === undefined ? [] : [`${index + 1} ${found}`]
  })
}

/** People's homes, wherever they are. */
const HOMES = /(?<![\w.])(\/home\/[a-z]|\/Users\/\w|\/root\/\w|[A-Z]:\\\\?Users)[^\s'"`)]*/

/** A folder as it stands in a text. @returns null for folders that many machines have. */
function folder(path: string): RegExp | null {
  const depth = path.split('/').filter((part) => part !== '').length
  if (depth === 0 || /^\/(usr|opt|srv|tmp|app|mnt|var)$/.test(path)) return null
  return new RegExp(`(?<![\\w.])${escaped(path)}(?![\\w-])`)
}

const escaped = (literal: string) => literal.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** Where this checkout is, and the home of whoever runs this. */
function places(): RegExp[] {
  const root = resolve(ROOT)
  // A home as short as root's would be found in addresses of databases; HOMES has what lies below it.
  const homes = homedir().split('/').length > 2 ? [homedir()] : []
  return [root, dirname(root), ...homes].map(folder).filter((one) => one !== null)
}

/** The registry that npm is set to, unless it is the one that everybody has. */
function registry(): RegExp[] {
  const address = process.env.npm_config_registry ?? ''
  if (!URL.canParse(address)) return []
  const { host } = new URL(address)
  return host.endsWith('npmjs.org') ? [] : [new RegExp(escaped(host))]
}

/** What this workplace says about itself. */
function toldHere(): RegExp[] {
  const file = process.env.BOTMESH_TRACES ?? join(ROOT, '..', 'traces.txt')
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => new RegExp(line, 'i'))
}

describe('traces', () => {
  it('no paths of a machine', () => {
    expect(findings(HOMES)).toEqual([])
    expect(places().flatMap((place) => findings(place))).toEqual([])
  })

  it('no addresses of registries, and no download addresses in the lock file', () => {
    expect(findings(/https?:\/\/(registry|npm|nexus|artifactory|verdaccio|proxy)[.:][^\s"']*/i)).toEqual([])
    expect(registry().flatMap((host) => findings(host))).toEqual([])
    expect(findings(/"resolved": "(?!libs\/|apps\/)[^"]*"/, ['package-lock.json'])).toEqual([])
  })

  it('no leftovers of how it was written', () => {
    expect(findings(/\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b|\bas an A[I]\b/)).toEqual([])
    expect(toldHere().flatMap((pattern) => findings(pattern))).toEqual([])
  })

  it('the patterns find what they are for', () => {
    const home = ['', 'home', 'ana', 'x.js'].join('/')
    expect(findingsIn(HOMES, `a\nimport '${home}'`)).toEqual([`2 ${home}`])
    expect(findingsIn(HOMES, 'docs/home/ana')).toEqual([])
    const place = folder('/build/agent') as RegExp
    expect(findingsIn(place, 'cd /build/agent/libs')).toEqual(['1 /build/agent'])
    expect(findingsIn(place, 'x/build/agent, /build/agents')).toEqual([])
    expect(folder('/')).toBeNull()
    expect(folder('/tmp')).toBeNull()
  })
})
