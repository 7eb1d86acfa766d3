/** From an existing Nest application to a coordinated bot: README's lines are counted, and are as many as it says. */
import { describe, expect, it } from '@jest/globals'
import { read } from '../tidy/sources.js'
import { newNestApplication } from '../packages/support/nest-12.js'
import { blocksOf } from './documents.js'

/** The module that was there before. */
const BEFORE = `
import { Module } from '@nestjs/common'
import { Stock } from './stock.js'
@Module({
  imports: [
  ],
  providers: [Stock],
})
export class AppModule {}
`

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//'))

describe('README: put it into your Nest backend', () => {
  it('N1: a coordinated bot takes fewer than fifteen lines, the one in main.ts included', () => {
    const module = blocksOf('README.md').find(({ text }) => text.startsWith('// app.module.ts'))
    const lines = linesOf(module?.text ?? '')
    const left = linesOf(BEFORE)
    const added = lines.filter((line) => {
      const at = left.indexOf(line)
      if (at >= 0) left.splice(at, 1)
      return at < 0
    })
    // A line of what was there is not dropped, but one that is longer now.
    expect(left).toEqual(['providers: [Stock],'])
    expect(added).toContain("coordination: { coordinator: store.coordinator({ leaseMs: '15s' }) },")
    const inMain = ['app.enableShutdownHooks()'].filter((line) => read('README.md').includes(line))
    const count = added.length + inMain.length
    expect(count).toBeLessThan(15)
    const words = ['ten', 'eleven', 'twelve', 'thirteen', 'fourteen']
    expect(read('README.md').toLowerCase()).toContain(`${words[count - 10]} lines for a coordinated bot`)
  })

  it('N1: the compiler options that it asks for are those that `nest new` writes', async () => {
    const options = (text = '{}') =>
      (JSON.parse(text) as { compilerOptions?: Record<string, unknown> }).compilerOptions ?? {}
    const { files } = await newNestApplication()
    const asked = ['README.md', 'docs/guides/nest.md', 'docs/es/nest.md'].map((page) =>
      options(blocksOf(page).find(({ text }) => text.includes('"compilerOptions"'))?.text),
    )
    expect(Object.keys(asked[0] ?? {})).toEqual(['module', 'experimentalDecorators', 'emitDecoratorMetadata'])
    expect(asked).toEqual([asked[0], asked[0], asked[0]])
    expect(options(files['tsconfig.json'])).toMatchObject(asked[0] ?? {})
  })
})
