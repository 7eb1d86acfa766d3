/** The project stands alone: nothing in it depends on, or tells of, the machine and the place it was made in. */
import { describe, expect, it } from '@jest/globals'
import { paths, read } from './sources.js'

const text = paths.filter(
  (path) => !/\.(png|jpg|gif|ico|woff2?|gz)$/.test(path) && !path.endsWith('traces.spec.ts'),
)

function findings(pattern: RegExp, files = text): string[] {
  return files.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) => {
        const [found] = pattern.exec(line) ?? []
        return found === undefined ? [] : [`${path}:${index + 1} ${found}`]
      }),
  )
}

describe('traces', () => {
  it('no paths of a machine', () => {
    expect(
      findings(/(^|[\s'"`(=:])(\/work\/|\/root\/|\/home\/[a-z]|\/Users\/|[A-Z]:\\\\?Users)[^\s'"`)]*/),
    ).toEqual([])
  })

  it('no addresses of registries, and no download addresses in the lock file', () => {
    expect(findings(/https?:\/\/(registry|npm|nexus|artifactory|verdaccio|proxy)[.:][^\s"']*/i)).toEqual([])
    expect(findings(/"resolved": "(?!libs\/|apps\/)[^"]*"/, ['package-lock.json'])).toEqual([])
  })

  it('no leftovers of how it was written', () => {
    expect(findings(/\b(TODO|FIXME|XXX|HACK)\b|\bissues (show|list)\b|\.library\/|\bas an AI\b/)).toEqual([])
  })
})
