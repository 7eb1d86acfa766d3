/** How test names are read and what they cite: docs/coverage.md stands on it. */
import { describe, expect, it } from '@jest/globals'
import { parse } from '../../tools/imports/read.mjs'
import { citedBy, namesIn } from '../../tools/test-names.mjs'

describe('test names', () => {
  it('are read with their groups, tables and suites that are values', () => {
    const text = `
      describe('turns', () => {
        it('one', () => {})
        it.each([['red', 1], ['blue', 2]])('is %s', () => {})
        it.each(unknown)('each %s', () => {})
      })
      suite.it(\`of \${name}\`, () => {})
      const cases = [{ name: 'a case', run: () => {} }, { name: 'no case' }]
      expect(it).toBe('x')`
    expect(namesIn(parse('a.spec.ts', text))).toEqual([
      'turns › one',
      'turns › is red',
      'turns › is blue',
      'turns › each %s',
      'of ${name}',
      'a case',
    ])
  })

  it('cite requirements and scenarios, ranges and lists included', () => {
    expect(citedBy('T1, T8: tickets')).toEqual(['T1', 'T8'])
    expect(citedBy('H1–H3 and K2-4')).toEqual(['H1', 'H2', 'H3', 'K2', 'K3', 'K4'])
    expect(citedBy('scenario 9 and scenarios 11, 12 and 20–22: Redis')).toEqual(
      [9, 11, 12, 20, 21, 22].map((n) => `scenario ${n}`),
    )
    expect(citedBy('UTF8 and 3 replicas in 5 s')).toEqual([])
  })
})
