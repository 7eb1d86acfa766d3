/** A fresh application in a folder of its own, away from the workspace, that ends with the spec file. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestEnd } from '../../support/test-end.js'
import { npmInstall, run, type RunResult } from './npm.js'
import { ROOT, type Packed } from './packed.mjs'

/** What the global setup has made. */
export const { url: registryUrl, packed } = JSON.parse(process.env.BOTMESH_PACKED ?? '{"packed":[]}') as {
  url: string
  packed: Packed[]
}

export interface ApplicationOptions {
  /** `module`, or `commonjs` as Nest 11 has it. */
  type: 'module' | 'commonjs'
  /** More of its package.json. */
  manifest?: object
}

export class Application {
  readonly dir = mkdtempSync(join(tmpdir(), 'botmesh-app-'))

  constructor({ type, manifest = {} }: ApplicationOptions) {
    onTestEnd(() => rmSync(this.dir, { recursive: true, force: true }))
    this.write('package.json', JSON.stringify({ name: 'app', private: true, type, ...manifest }))
    this.write('.npmrc', `@botmesh:registry=${registryUrl}/\n`)
  }

  write(path: string, text: string): void {
    const file = join(this.dir, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  /** Copies a folder of fixtures. @param edit changes a file's text. */
  copy(fixtures: URL, into: string, edit: (text: string) => string = (text) => text): void {
    const folder = fileURLToPath(fixtures)
    for (const name of readdirSync(folder))
      this.write(join(into, name), edit(readFileSync(join(folder, name), 'utf8')))
  }

  install(...wanted: string[]): Promise<void> {
    return npmInstall(this.dir, wanted)
  }

  /** Runs this Node with a script of the application. */
  node(args: readonly string[], env: Record<string, string> = {}): Promise<RunResult> {
    return run(process.execPath, args, { cwd: this.dir, env })
  }

  /** What its compiler takes for `ignoreDeprecations`: Nest 11's settings are older than TypeScript 6. */
  get deprecations(): string {
    return this.has('typescript') ? '5.0' : '6.0'
  }

  /** The application's own compiler if it has one, else the workspace's. */
  tsc(...args: string[]): Promise<RunResult> {
    const own = join(this.dir, 'node_modules/typescript/bin/tsc')
    const script = exists(own) ? own : join(ROOT, 'node_modules/typescript/bin/tsc')
    return this.node([script, ...args])
  }

  /** The application's own Jest. */
  jest(...args: string[]): Promise<RunResult> {
    return this.node(['node_modules/jest/bin/jest.js', '--maxWorkers=1', ...args], { NO_COLOR: '1' })
  }

  /** Version of an installed package. */
  version(name: string): string {
    const text = readFileSync(join(this.dir, 'node_modules', name, 'package.json'), 'utf8')
    return (JSON.parse(text) as { version: string }).version
  }

  has(name: string): boolean {
    return exists(join(this.dir, 'node_modules', name))
  }

  /** Bytes of what is installed, or of one package of it. */
  size(name = ''): number {
    return sizeOf(join(this.dir, 'node_modules', name))
  }
}

function sizeOf(path: string): number {
  return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    if (entry.isSymbolicLink()) return sum
    const inside = join(path, entry.name)
    return sum + (entry.isDirectory() ? sizeOf(inside) : statSync(inside).size)
  }, 0)
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}
