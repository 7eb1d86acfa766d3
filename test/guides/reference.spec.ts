/** The generated reference covers what the packages export. */
import { describe, expect, it } from '@jest/globals'
import { existsSync } from 'node:fs'
import { paths } from '../tidy/sources.js'

describe('reference', () => {
  it('is made of every package, from sources that exist', async () => {
    const { entryPoints } = await import('../../tools/reference.mjs')
    const sources = entryPoints()
    expect(sources.filter((source) => !existsSync(source))).toEqual([])
    const packages = paths.filter((path) => /^libs\/[^/]+\/package\.json$/.test(path))
    for (const path of packages) {
      const folder = path.replace('package.json', '')
      expect([folder, sources.some((source) => source.includes(`/${folder}`))]).toEqual([folder, true])
    }
  })
})
