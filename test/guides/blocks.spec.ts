/** The code in the documents: it compiles, quotes what it says it quotes, and names commands that exist. */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { parseAllDocuments } from 'yaml'
import { read } from '../tidy/sources.js'
import { compile } from './compile.js'
import { blocksOf, documents, quotedBy, tight, type Block } from './documents.js'

/** Guides whose blocks all stand in a file of samples, which is compiled, and run where it can be. */
const SAMPLES: Record<string, string> = {
  'locks.md': 'test/guides/fenced-writes.ts',
  'scheduler.md': 'test/guides/scheduler-samples.ts',
}
const samplesOf = (document: string) => SAMPLES[document.replace(/^docs\/(guides|es)\//, '')]

const all = documents.flatMap(blocksOf)
const code = all.filter(({ language }) => language === 'ts' || language === 'typescript')
const loose = code.filter((block) => samplesOf(block.document) === undefined && quotedBy(block) === null)
const where = ({ document, line }: Block) => `${document}:${line}`

describe('code in documents', () => {
  let said: Map<string, string[]>
  beforeAll(() => {
    said = compile(loose)
  }, 120_000)

  it.each([...new Set(loose.map(({ document }) => document))])('%s compiles', (document) => {
    expect(said.get(document)).toEqual([])
  })

  it('what is quoted stands in the file that is named, which the tests run', () => {
    const untrue = code.filter((block) => {
      const quoted = quotedBy(block)
      return quoted !== null && !tight(read(quoted.file)).includes(tight(quoted.quotation))
    })
    expect(untrue.map(where)).toEqual([])
  })

  it('samples of a guide stand in the file that has them', () => {
    const untrue = code.filter((block) => {
      const file = samplesOf(block.document)
      return file !== undefined && !tight(read(file)).includes(tight(block.text))
    })
    expect(untrue.map(where)).toEqual([])
  })

  it('JSON and YAML can be read', () => {
    for (const block of all.filter(({ language }) => language === 'json')) {
      const text = /^\s*[{[]/.test(block.text) ? block.text : `{${block.text}}`
      expect(() => [where(block), JSON.parse(text)]).not.toThrow()
    }
    for (const block of all.filter(({ language }) => /^ya?ml$/.test(language))) {
      expect([where(block), ...parseAllDocuments(block.text).flatMap(({ errors }) => errors)]).toEqual([
        where(block),
      ])
    }
  })

  it('npm scripts that are named exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const unknown = documents.flatMap((document) =>
      [...read(document).matchAll(/npm run (?:-s )?([a-z][\w:]*)/g)]
        .filter(([, name = '']) => scripts[name] === undefined)
        .map(([text]) => `${document}: ${text}`),
    )
    expect(unknown).toEqual([])
  })
})
