/** What the tarballs look like to those who judge packages: publint, and "are the types wrong". */
import { describe, expect, it } from '@jest/globals'
import { join } from 'node:path'
import { packed } from './support/application.js'
import { run } from './support/npm.js'
import { ROOT } from './support/packed.mjs'

const tarballs = packed.map((one) => [one.manifest.name, one.tarball] as const)

/** A development dependency's program on a tarball. */
function check(program: string, ...args: string[]) {
  const script = join(ROOT, 'node_modules', program)
  return run(process.execPath, [script, ...args], { cwd: ROOT, env: { NO_COLOR: '1' } })
}

describe('tarballs', () => {
  it.each(tarballs)('%s: publint finds nothing, not even to suggest', async (_name, tarball) => {
    expect(await check('publint/src/cli.js', 'run', tarball, '--strict')).toMatchObject({
      code: 0,
      output: expect.stringContaining('All good!'),
    })
  })

  it.each(tarballs)('%s: the types are right for every way to resolve them', async (_name, tarball) => {
    // The packages are ES modules only. `require()` of one is what this rule warns of: right up to Node 20.18,
    // and these packages want 20.19, where it works (nest.install-spec.ts does it).
    const ignored = ['--ignore-rules', 'cjs-resolves-to-esm']
    const result = await check(
      '@arethetypeswrong/cli/dist/index.js',
      tarball,
      ...ignored,
      '--format',
      'ascii',
    )
    expect(result).toMatchObject({ code: 0, output: expect.stringContaining('No problems found') })
  })
})
