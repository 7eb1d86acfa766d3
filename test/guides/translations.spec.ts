/** The Spanish guides follow the English ones: same files, headings, tables, links and code. */
import { describe, expect, it } from '@jest/globals'
import { paths, read } from '../tidy/sources.js'
import { blocksOf } from './documents.js'

const guides = paths.filter((path) => /^docs\/guides\/.*\.md$/.test(path)).map((path) => path.slice(12))
const spanish = paths.filter((path) => /^docs\/es\/.*\.md$/.test(path)).map((path) => path.slice(8))

/** What must not differ between two languages. */
function shapeOf(document: string) {
  const prose = read(document).replace(/^```[\s\S]*?^```$/gm, '')
  return {
    headings: [...prose.matchAll(/^#+(?= )/gm)].map(([level]) => level),
    rows: [...prose.matchAll(/^\|(.*)\|$/gm)].map(([, cells = '']) => cells.split(/(?<!\\)\|/).length),
    items: [...prose.matchAll(/^ *(?:-|\d+\.) /gm)].length,
    links: [...prose.matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target).sort(),
  }
}

describe('guides in two languages', () => {
  it('each guide exists in both', () => {
    expect(spanish).toEqual(guides)
  })

  it.each(guides)('%s: headings, tables, lists and links', (guide) => {
    expect(shapeOf(`docs/es/${guide}`)).toEqual(shapeOf(`docs/guides/${guide}`))
  })

  it.each(guides)('%s: the same code', (guide) => {
    const codeOf = (document: string) =>
      blocksOf(document).map(({ language, text }) => (language === 'mermaid' ? [language] : [language, text]))
    expect(codeOf(`docs/es/${guide}`)).toEqual(codeOf(`docs/guides/${guide}`))
  })
})
