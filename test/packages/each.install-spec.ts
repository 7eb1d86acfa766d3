/** Each package by itself in a fresh application of ES modules: it installs, loads, has types, and is no larger than it was. */
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { Application, packed } from './support/application.js'
import { entriesOf, ROOT } from './support/packed.mjs'
import { SIZE_LIMITS } from '../../tools/size-limits.mjs'

const KIB = 1024

/** Imports all, and says what it found. */
const mainOf = (entries: readonly string[]): string =>
  `const counts = {}
for (const entry of ${JSON.stringify(entries)}) counts[entry] = Object.keys(await import(entry)).length
console.log(JSON.stringify(counts))
`

/** Uses the types of all: a namespace import that resolves to nothing, or to \`any\`, fails to compile. */
const typesOf = (entries: readonly string[]): string =>
  `type Known<T> = 0 extends 1 & T ? never : T
${entries.map((entry, index) => `import * as e${index} from '${entry}'\nexport const k${index}: Known<typeof e${index}> = e${index}`).join('\n')}
`

describe('each package by itself', () => {
  it.each(packed.map((one) => [one.manifest.name, one] as const))(
    '%s installs from its tarball, every export loads, its types are whole, its size is within its limit',
    async (name, { manifest }) => {
      const application = new Application({ type: 'module' })
      await application.install(name)
      const entries = entriesOf(manifest)
      application.write('main.js', mainOf(entries))
      const loaded = await application.node(['main.js'])
      expect(loaded).toEqual({ code: 0, output: expect.stringMatching(/^\{.*\}$/) })
      const counts = JSON.parse(loaded.output) as Record<string, number>
      expect(Object.keys(counts)).toEqual(entries)
      expect(Object.values(counts).filter((count) => count === 0)).toEqual([])
      expectWithin(name, application.size(name), application.size())

      application.write('types.ts', typesOf(entries))
      const options = ['--module', 'nodenext', '--target', 'es2022', '--strict', '--noEmit', '--skipLibCheck']
      const nodeTypes = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]
      expect(await application.tsc(...options, ...nodeTypes, 'types.ts')).toEqual({ code: 0, output: '' })
    },
  )
})

function expectWithin(name: string, ownBytes: number, allBytes: number): void {
  const limits = SIZE_LIMITS[name]
  const seen = { ownKiB: Math.ceil(ownBytes / KIB), allKiB: Math.ceil(allBytes / KIB) }
  if (limits === undefined) {
    throw new Error(`${name} has no line in tools/size-limits.mjs; seen now: ${JSON.stringify(seen)}`)
  }
  expect({
    ...seen,
    over: seen.ownKiB > limits.ownKiB || seen.allKiB > limits.allKiB ? limits : 'nothing',
  }).toEqual({ ...seen, over: 'nothing' })
}
