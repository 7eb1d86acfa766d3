/** llms.txt has the usual form (a title, a summary, sections of links), its links exist, and no guide is left out. */
import { describe, expect, it } from '@jest/globals'
import { paths, read } from '../tidy/sources.js'

describe('llms.txt', () => {
  const text = read('llms.txt')
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => target)

  it('begins with a title and a summary, and has sections', () => {
    expect(text).toMatch(/^# \S.*\n\n> \S/)
    expect([...text.matchAll(/^## (.*)$/gm)].map(([, name]) => name)).toEqual([
      'Guides',
      'Packages',
      'Examples',
      'Optional',
    ])
  })

  it('links to files that exist', () => {
    expect(links.filter((link) => !paths.includes(link))).toEqual([])
  })

  it('names every guide and every package that is not a private detail', () => {
    const wanted = paths.filter(
      (path) =>
        /^(docs\/guides\/.*\.md|libs\/[^/]+\/README\.md)$/.test(path) && path !== 'libs/sql-store/README.md',
    )
    expect(wanted.filter((path) => !links.includes(path))).toEqual([])
  })
})
