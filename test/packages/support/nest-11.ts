/** The settings that Nest 11 gives a new application (`nest new`), as far as they matter here. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './packed.mjs'

export const NEST_11_JEST = {
  moduleFileExtensions: ['js', 'json', 'ts'],
  rootDir: 'src',
  testRegex: '.*\\.spec\\.ts$',
  transform: { '^.+\\.(t|j)s$': 'ts-jest' },
  testEnvironment: 'node',
}

export const NEST_11_TSCONFIG = {
  compilerOptions: {
    ...{ module: 'nodenext', moduleResolution: 'nodenext', resolvePackageJsonExports: true },
    ...{ esModuleInterop: true, allowSyntheticDefaultImports: true, isolatedModules: true },
    ...{ emitDecoratorMetadata: true, experimentalDecorators: true },
    ...{ target: 'ES2023', outDir: './dist', baseUrl: './', rootDir: './src', incremental: true },
    ...{ declaration: true, removeComments: true, sourceMap: true, skipLibCheck: true },
    ...{ strictNullChecks: true, noImplicitAny: true, strictBindCallApply: true },
    ...{ forceConsistentCasingInFileNames: true, noFallthroughCasesInSwitch: true },
  },
  include: ['src'],
  exclude: ['**/*.spec.ts'],
}

/**
 * The Jest settings that the README of `@botmesh/nestjs` tells CommonJS applications to add: its JSON blocks under
 * "CommonJS", the one for most packages first.
 */
export function documentedJestSettings(): Record<string, unknown>[] {
  const text = readFileSync(join(ROOT, 'libs/nestjs/README.md'), 'utf8')
  const [, chapter = ''] = text.split(/^## CommonJS$/m)
  return [...chapter.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, block = '']) => (JSON.parse(`{${block}}`) as { jest: Record<string, unknown> }).jest,
  )
}
