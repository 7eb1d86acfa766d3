/**
 * The diagrams: each is of a kind that renderers know, made of lines of that kind's grammar as far as these documents use
 * it (Mermaid itself reads them in test/packages), and the states of state-machines.md are those of the sources.
 */
import { describe, expect, it } from '@jest/globals'
import { read } from '../tidy/sources.js'
import { blocksOf, documents, type Block } from './documents.js'

const diagrams = documents.flatMap(blocksOf).filter(({ language }) => language === 'mermaid')

const ID = String.raw`[A-Za-z][\w]*`
const LABEL = String.raw`[^;:#{}]+`
const GRAMMAR: Record<string, RegExp[]> = {
  'stateDiagram-v2': [new RegExp(String.raw`^(\[\*\]|${ID}) --> (\[\*\]|${ID})(: ${LABEL})?$`)],
  sequenceDiagram: [
    new RegExp(`^participant ${ID}( as .+)?$`),
    new RegExp(`^${ID}(->>|-->>)${ID}: [^;#]+$`),
    new RegExp(`^Note over ${ID}(,${ID})?: [^;#]+$`),
  ],
  'flowchart LR': [],
  'flowchart TB': [],
}
const SHAPE = String.raw`${ID}(\[\(?[^[\]()]*\)?\])?`
const NODES = `${SHAPE}( & ${SHAPE})*`
const EDGE = String.raw`(-->|<-->|-->\|[^|]+\||<-->\|[^|]+\|)`
for (const kind of ['flowchart LR', 'flowchart TB']) {
  GRAMMAR[kind] = [
    new RegExp(String.raw`^${NODES}( ${EDGE} ?${NODES})*$`),
    /^subgraph \w+(\[.+\])?$/,
    /^end$/,
  ]
}

/** Lines that no renderer would understand. */
function wrongIn({ document, line, text }: Block): string[] {
  const [head = '', ...lines] = text.trimEnd().split('\n')
  const grammar = GRAMMAR[head.trim()]
  if (grammar === undefined) return [`${document}:${line} no known kind of diagram: ${head}`]
  return lines.flatMap((one, index) =>
    grammar.some((form) => form.test(one.trim())) ? [] : [`${document}:${line + index + 1} ${one.trim()}`],
  )
}

/** States of the nth diagram under a heading of state-machines.md. */
function statesUnder(heading: string): string[] {
  const document = 'docs/architecture/state-machines.md'
  const lines = read(document).split('\n')
  const start = lines.indexOf(`## ${heading}`)
  const block = blocksOf(document).find(({ line }) => line > start)
  const names = [...(block?.text ?? '').matchAll(/^ *(\S+) --> ([^\s:]+)/gm)].flatMap(
    ([, a = '', b = '']) => [a, b],
  )
  return [...new Set(names)].filter((name) => name !== '[*]').toSorted()
}

/** The members of a union of texts in a source. */
function unionIn(path: string, pattern: RegExp): string[] {
  const [, union = ''] = pattern.exec(read(path)) ?? []
  return [...union.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name).sort()
}

/** Names at the beginning of the lines of a list in a comment: "- `idle`: …" or "- *idle*: …". */
function listIn(path: string): string[] {
  const [comment = ''] = /\/\*\*[\s\S]*?\*\//.exec(read(path)) ?? []
  return [...comment.matchAll(/^ \* - [`*](\w+)[`*]:/gm)].map(([, name = '']) => name).sort()
}

describe('diagrams', () => {
  it('there are some, and each is well formed', () => {
    expect(diagrams.length).toBeGreaterThan(10)
    expect(diagrams.flatMap(wrongIn)).toEqual([])
  })

  it('the check notices what is malformed', () => {
    const block = (text: string) => ({ document: 'x.md', n: 1, line: 1, language: 'mermaid', text })
    for (const text of [
      'stateDiagram-v2\n  a -> b',
      'pie\n',
      'flowchart LR\n  a[x --> b',
      'sequenceDiagram\n  a: b',
    ]) {
      expect(wrongIn(block(text))).toHaveLength(1)
    }
  })

  it.each([
    ['Session', () => listIn('libs/core/src/runtime/session-keeper.ts')],
    ["A chat's turn", () => listIn('libs/core/src/kernel/turn-machine.ts')],
    ['Ticket', () => unionIn('libs/core/src/runtime/ticket.ts', /status: ((?:'\w+'[ |]*)+)/)],
    ['Leadership', () => unionIn('libs/core/src/kernel/election-machine.ts', /type ElectionState = (.*)/)],
    ['Provider session', () => unionIn('libs/core/src/bot/face.ts', /type BotRole = (.*)/)],
    ['Outbox entry', () => unionIn('libs/core/src/contracts/outbox.ts', /status: ((?:'\w+'[ |]*)+)/)],
  ] as const)('state-machines.md, %s: the states are those of the source', (heading, ofSource) => {
    const states = ofSource()
    expect(states.length).toBeGreaterThan(2)
    expect(statesUnder(heading)).toEqual(states)
  })
})
