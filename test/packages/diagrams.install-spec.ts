/**
 * Mermaid itself reads every diagram of the documents. It is too large to be a dependency for that, so it comes along with
 * what strangers install; test/guides/diagrams.spec.ts looks at their form at every run of the tests.
 */
import { describe, expect, it } from '@jest/globals'
import { blocksOf, documents } from '../guides/documents.js'
import { Application } from './support/application.js'

/** Mermaid cleans labels of markup in a browser; here is none, and nothing is drawn. */
const PARSE = `import { readFileSync } from 'node:fs'
import DOMPurify from 'dompurify'
Object.assign(DOMPurify, { addHook() {}, sanitize: (text) => text })
const { default: mermaid } = await import('mermaid')
const wrong = []
for (const [where, text] of JSON.parse(readFileSync('diagrams.json', 'utf8')))
  await mermaid.parse(text).catch((error) => wrong.push(where + ' ' + error.message))
console.log(JSON.stringify(wrong))
`

describe('diagrams', () => {
  it('Mermaid can read each of them', async () => {
    const diagrams = documents
      .flatMap(blocksOf)
      .filter(({ language }) => language === 'mermaid')
      .map(({ document, line, text }) => [`${document}:${line}`, text])
    const app = new Application({ type: 'module' })
    await app.install('mermaid@^11')
    const malformed = ['malformed', 'flowchart LR\n  a[x --> b']
    app.write('diagrams.json', JSON.stringify([...diagrams, malformed]))
    app.write('parse.js', PARSE)
    const { code, output } = await app.node(['parse.js'])
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/^\[.*\]$/) })
    expect(JSON.parse(output)).toEqual([expect.stringMatching(/^malformed Parse error/)])
  })
})
