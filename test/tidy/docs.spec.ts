/** What the documents claim exists. */
import { posix } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { citedBy, testNames } from '../../tools/test-names.mjs'
import { paths, read } from './sources.js'

const documents = paths.filter((path) => path.endsWith('.md'))
const tests = testNames()
const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g

/** Rows of all tables of a document, as cells without the outer bars. */
function rows(path: string): string[][] {
  const lines = read(path).split('\n')
  const cells = (line: string) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim())
  return lines.filter((line) => line.startsWith('|') && !/^\|[\s:|-]+\|$/.test(line)).map(cells)
}

const linksIn = (text: string) => [...text.matchAll(LINK)].map(([, target = '']) => target)

/** An anchor as the usual renderers make it from a heading. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[`*_]/g, '')
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .trim()
    .replace(/ /g, '-')

describe('documents', () => {
  it('links lead somewhere', () => {
    const broken: string[] = []
    for (const path of documents) {
      const text = read(path).replace(/```[\s\S]*?```/g, '')
      for (const link of linksIn(text).filter((one) => !/^[a-z]+:/.test(one))) {
        const [file = '', anchor] = link.split('#')
        const target = file === '' ? path : posix.join(posix.dirname(path), file)
        const isThere =
          paths.includes(target) || paths.some((one) => one.startsWith(`${target.replace(/\/$/, '')}/`))
        if (!isThere) broken.push(`${path}: ${link}`)
        else if (anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor)) {
          broken.push(`${path}: ${link} (no such heading)`)
        }
      }
    }
    expect(broken).toEqual([])
  })

  it('coverage.md: each id is cited by a test of each file it names', () => {
    const claims = rows('docs/coverage.md').filter(([, , files = '']) => files.includes(']('))
    const untrue = claims.flatMap(([id = '', , files = '']) =>
      linksIn(files)
        .map((link) => posix.join('docs', link))
        .filter((file) => !tests.some((test) => test.file === file && citedBy(test.name).includes(id)))
        .map((file) => `${id}: no test in ${file} cites it (refresh: node tools/coverage.mjs)`),
    )
    expect(untrue).toEqual([])
  })

  it('dependencies.md lists every dependency, and none that is gone', () => {
    const used = new Set<string>()
    for (const path of paths.filter((one) => /(^|\/)package\.json$/.test(one))) {
      const manifest = JSON.parse(read(path)) as Record<string, Record<string, string> | undefined>
      for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies', 'devDependencies']) {
        for (const name of Object.keys(manifest[kind] ?? {}))
          if (!name.startsWith('@botmesh/')) used.add(name)
      }
    }
    const table = rows('docs/dependencies.md')
    const listed = table.flatMap(([names = '', ...rest]) =>
      rest.every((cell) => cell !== '') ? [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name) : [],
    )
    expect(listed.toSorted()).toEqual([...used].sort())
  })

  it('transports-checked.md: each row names a test that exists', () => {
    const wrong = rows('docs/transports-checked.md')
      .slice(1)
      .flatMap(([transport, what, link = '', words = '']) => {
        const files = linksIn(link).map((one) => posix.join('docs', one))
        const isThere = files.some((file) =>
          tests.some((test) => test.file === file && test.name.includes(words)),
        )
        return isThere && words !== ''
          ? []
          : [`${transport}, ${what}: no test in ${files.join()} named “${words}”`]
      })
    expect(wrong).toEqual([])
  })

  it('page-map.md: each row names a requirement, files and tests that exist, or says "not yet"', () => {
    const wrong = rows('docs/page-map.md')
      .filter(([, id = '']) => id !== 'requirement')
      .flatMap((row) => wrongIn(row).map((what) => `${row[0]}: ${what}`))
    expect(wrong).toEqual([])
  })
})

function anchorsOf(path: string): string[] {
  return [...read(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
}

const REQUIREMENTS = new Set(rows('docs/coverage.md').map(([id = '']) => id))

/** A row is: statement | requirement ids | links to sources | links to spec files, each with a test citing an id. */
function wrongIn([, ids = '', files = '', specs = '']: string[]): string[] {
  const cited = ids.split(/[,\s]+/).filter((id) => id !== '')
  const wrong = cited.filter((id) => !REQUIREMENTS.has(id)).map((id) => `no requirement "${id}"`)
  if (cited.length === 0) wrong.push('it names no requirement')
  for (const [what, cell] of [
    ['file', files],
    ['test', specs],
  ] as const) {
    if (cell.startsWith('not yet')) continue
    const links = linksIn(cell).map((link) => posix.join('docs', link.split('#')[0] ?? ''))
    if (links.length === 0) wrong.push(`no ${what}, and no "not yet"`)
    for (const link of links) {
      if (!paths.includes(link)) wrong.push(`${link} does not exist`)
      else if (
        what === 'test' &&
        !tests.some(({ file, name }) => file === link && citedBy(name).some((id) => cited.includes(id)))
      ) {
        wrong.push(`no test in ${link} cites ${ids}`)
      }
    }
  }
  return wrong
}
