/** A Nest 12 application as `nest new` makes it: the generator itself, without what its tests do not need. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './npm.js'
import { ROOT } from './packed.mjs'

/** Of its development dependencies, what formats, lints, deploys or measures. */
const NOT_FOR_TESTS =
  /^(@nestjs\/(cli|mau|schematics)|@vitest\/coverage-.*|oxlint.*|prettier|source-map-support)$/

export interface NewApplication {
  /** What it asks for, as arguments of `npm install`. */
  wanted: string[]
  /** Its files, by path. */
  files: Record<string, string>
}

export async function newNestApplication(): Promise<NewApplication> {
  const dir = mkdtempSync(join(tmpdir(), 'botmesh-nest-new-'))
  try {
    const nest = join(ROOT, 'node_modules/@nestjs/cli/bin/nest.js')
    const options = ['--skip-install', '--skip-git', '--no-observe', '--package-manager', 'npm']
    const { code, output } = await run(process.execPath, [nest, 'new', 'app', ...options], { cwd: dir })
    if (code !== 0) throw new Error(`nest new failed:\n${output}`)
    const read = (path: string) => readFileSync(join(dir, 'app', path), 'utf8')
    const manifest = JSON.parse(read('package.json')) as {
      dependencies: Record<string, string>
      devDependencies: Record<string, string>
    }
    const wanted = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
      .filter(([name]) => !NOT_FOR_TESTS.test(name))
      .map(([name, range]) => `${name}@${range}`)
    const paths = ['tsconfig.json', 'vitest.config.ts', 'src/app.controller.ts', 'src/app.service.ts']
    const tests = ['src/app.controller.spec.ts']
    return { wanted, files: Object.fromEntries([...paths, ...tests].map((path) => [path, read(path)])) }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
