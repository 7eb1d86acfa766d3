/** Builds every package into its dist: TypeScript by `tsc -b`, and what code reads at run time beside it, as it is. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { trackedFiles } from './project-files.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const args = ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.build.json']
const { status } = spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' })
for (const path of trackedFiles()) {
  if (!/^(libs|apps)\/[^/]+\/src\/.*\.(lua|html|css|svg|json)$/.test(path)) continue
  const target = join(ROOT, path.replace('/src/', '/dist/'))
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(join(ROOT, path), target)
}
process.exitCode = status ?? 1
