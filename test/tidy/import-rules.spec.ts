/** The import rules themselves: each kind of violation is found, where it is, with a way out. */
import { describe, expect, it } from '@jest/globals'
import { checkImports } from '../../tools/imports/check.mjs'

const core = { name: '@botmesh/core', exports: { '.': './src/index.ts' }, dependencies: { zod: '4' } }
const redis = {
  name: '@botmesh/redis-store',
  exports: { '.': './src/index.ts' },
  dependencies: { ioredis: '6' },
}
const meta = { name: '@botmesh/meta', exports: { '.': './src/index.ts' } }

function findings(files: Record<string, string>): string[] {
  const manifests = new Map<string, object>([
    ['.', { devDependencies: { jest: '30' } }],
    ['libs/core', core],
    ['libs/redis-store', redis],
    ['libs/meta', meta],
  ])
  const known = { 'libs/core/src/index.ts': 'export {}', 'libs/core/src/kernel/a.ts': 'export {}' }
  const workspace = { files: new Map(Object.entries({ ...known, ...files })), manifests }
  return checkImports(workspace).map(({ file, line, rule }) => `${file}:${line} ${rule}`)
}

describe('import rules', () => {
  it('keep the rooms of core apart, types included', () => {
    const files = { 'libs/core/src/contracts/b.ts': `\nimport type { A } from '../kernel/a.js'` }
    expect(findings(files)).toEqual([
      'libs/core/src/contracts/b.ts:2 core/contracts may import only nothing, not kernel/a.ts',
    ])
    expect(findings({ 'libs/core/src/contracts/b.ts': `import { z } from 'zod'` })).toEqual([
      expect.stringContaining('core/contracts imports no package'),
    ])
    expect(findings({ 'libs/core/src/runtime/b.ts': `export * from '../kernel/a.js'` })).toEqual([])
    expect(findings({ 'libs/core/src/bot/b.ts': `const a = import('../kernel/a.js')` })).toEqual([])
    expect(findings({ 'libs/core/src/shed/b.ts': `import '../kernel/a.js'` })).toEqual([
      expect.stringContaining('core has no room "shed"'),
    ])
  })

  it.each([
    ['async', 'export async function f() {}', 'synchronous'],
    ['time', 'export const f = () => Date.now()', 'does not use Date'],
    ['a timer', 'setTimeout(() => {}, 1)', 'does not use setTimeout'],
    ['chance', 'export const x = Math.random()', 'no random numbers'],
    ['the system', `import { randomUUID } from 'node:crypto'`, 'no system module'],
    ['a promise', 'export const x = Promise.resolve()', 'does not use Promise'],
  ])('keep %s out of the kernel', (_what, text, message) => {
    expect(findings({ 'libs/core/src/kernel/b.ts': text })).toEqual([expect.stringContaining(message)])
  })

  it('let the kernel name things as it likes', () => {
    const text = 'export const f = (at: { process: number }) => at.process; type T = { Date: string }'
    expect(findings({ 'libs/core/src/kernel/b.ts': text })).toEqual([])
  })

  it('keep packages apart: by path, by depth, by direction, by declaration', () => {
    const at = (text: string) => findings({ 'libs/redis-store/src/b.ts': text })
    expect(at(`import '../../core/src/kernel/a.js'`)).toEqual([
      expect.stringContaining('leaves libs/redis-store/src/'),
    ])
    expect(at(`import '@botmesh/core/src/kernel/a.js'`)).toEqual([expect.stringContaining('reaches into')])
    expect(at(`import '@botmesh/meta'`)).toEqual([
      'libs/redis-store/src/b.ts:1 @botmesh/redis-store may import @botmesh/core, not @botmesh/meta',
    ])
    expect(at(`import 'lodash'`)).toEqual([expect.stringContaining('not a declared dependency')])
    expect(at(`import 'fs'`)).toEqual([expect.stringContaining('without its prefix')])
    expect(at(`import 'jest'`)).toEqual([expect.stringContaining('not a declared dependency')])
    expect(at(`import '@botmesh/core'; import 'ioredis'; import 'node:fs'`)).toEqual([])
    expect(findings({ 'libs/core/src/bot/b.ts': `import '@botmesh/redis-store'` })).toEqual([
      expect.stringContaining('may import none of our packages'),
    ])
    expect(
      findings({ 'test/e2e/b.ts': `import '@botmesh/redis-store'; import '@botmesh/meta'; import 'jest'` }),
    ).toEqual([])
    expect(findings({ 'libs/meta/test/b.ts': `import '../../../test/support/index.js'` })).toEqual([])
  })

  it('find cycles, through package names too', () => {
    const files = {
      'libs/core/src/runtime/b.ts': `import './c.js'`,
      'libs/core/src/runtime/c.ts': `\nimport type { B } from './b.js'`,
    }
    expect(findings(files)).toEqual([
      'libs/core/src/runtime/b.ts:1 import cycle: libs/core/src/runtime/b.ts:1 → libs/core/src/runtime/c.ts:2 → libs/core/src/runtime/b.ts',
    ])
  })
})
