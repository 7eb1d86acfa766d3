/** What the packages say of themselves, and what releases them: read, not run. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { packages, ROOT, type Manifest } from './support/packed.mjs'
import { SIZE_LIMITS } from '../../tools/size-limits.mjs'

const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const all = packages()

/** Findings of all packages, each with the package's name. */
function findings(of: (manifest: Manifest, folder: string) => (string | false)[]): string[] {
  return all.flatMap(({ manifest, folder }) =>
    of(manifest, folder)
      .filter((one) => one !== false)
      .map((one) => `${manifest.name}: ${one}`),
  )
}

describe('manifests', () => {
  it('every package says what it is, in the same way', () => {
    const same = { type: 'module', license: 'MIT', engines: { node: '>=20.19' }, sideEffects: false }
    expect(
      findings((manifest) => [
        ...Object.entries(same)
          .filter(
            ([field, value]) => JSON.stringify(manifest[field as keyof Manifest]) !== JSON.stringify(value),
          )
          .map(([field, value]) => `"${field}" is not ${JSON.stringify(value)}`),
        !/^.{10,120}\.$/.test(manifest.description ?? '') && '"description" is no sentence',
        manifest.main !== './dist/index.js' && '"main" is not the built index',
        manifest.types !== './dist/index.d.ts' && '"types" is not that of the built index',
      ]),
    ).toEqual([])
  })

  it('exports: our source condition first, then types, then the only default; nothing else can be reached', () => {
    expect(
      findings(({ exports, typesVersions }) =>
        Object.entries(exports).flatMap(([path, target]) => {
          if (path === './package.json') return [target !== path && 'package.json is not itself']
          if (typeof target === 'string') return [`${path} has no types`]
          const order = Object.keys(target).join()
          const types = typesVersions?.['*']?.[path.slice(2)]?.[0]
          return [
            order !== '@botmesh/source,types,default' && `${path} has the conditions ${order}`,
            // For CommonJS applications of older settings, which do not read "exports".
            path !== '.' && types !== target.types && `${path} is missing in "typesVersions"`,
          ]
        }),
      ),
    ).toEqual([])
  })

  it('siblings are wanted by a range, so that an application has one copy of each; versions are one', () => {
    const [version] = new Set(all.map(({ manifest }) => manifest.version))
    expect(
      findings(({ version: own, dependencies = {}, peerDependencies = {} }) => [
        own !== version && `version ${own} is not ${version}`,
        ...Object.entries(dependencies)
          .filter(([, range]) => !range.startsWith('^'))
          .map(([name, range]) => `wants ${name} ${range}, not a range`),
        ...Object.keys(dependencies)
          .filter((name) => name in peerDependencies)
          .map((name) => `${name} is a dependency and a peer`),
      ]),
    ).toEqual([])
  })

  it('the licence goes with each, and no address is made up', () => {
    const licence = text('LICENSE')
    expect(
      findings(({ name, ...manifest }, folder) => [
        !readdirSync(folder).includes('LICENSE') && 'has no LICENSE: copy the one of the root',
        readdirSync(folder).includes('LICENSE') &&
          readFileSync(join(folder, 'LICENSE'), 'utf8') !== licence &&
          'its LICENSE is not that of the root',
        !readdirSync(folder).includes('README.md') && 'has no README',
        // Until the project has a public address there is nothing to say here.
        ...['repository', 'homepage', 'bugs', 'author'].filter((field) => field in manifest),
      ]),
    ).toEqual([])
  })

  it('each has a limit of its installed size, and no limit is left over', () => {
    expect(Object.keys(SIZE_LIMITS).sort()).toEqual(all.map(({ manifest }) => manifest.name).sort())
  })
})

describe('releases', () => {
  it('changesets raise all packages together', () => {
    const config = JSON.parse(text('.changeset/config.json')) as Record<string, unknown>
    expect(config).toMatchObject({ fixed: [['@botmesh/*']], access: 'public', baseBranch: 'main' })
    // Throws for a configuration or a changeset that it cannot read.
    const script = "import('@changesets/config').then(async ({ read }) => { await read(process.cwd()) })"
    execFileSync(process.execPath, ['-e', script], { cwd: ROOT, stdio: 'pipe' })
    const names = new Set(all.map(({ manifest }) => manifest.name))
    const unknown = readdirSync(join(ROOT, '.changeset'))
      .filter((file) => file.endsWith('.md') && file !== 'README.md')
      .flatMap((file) => {
        const [, head = ''] = text(`.changeset/${file}`).split(/^---$/m)
        return Object.entries(parse(head) as Record<string, string>)
          .filter(([name, step]) => !names.has(name) || !/^(patch|minor|major)$/.test(step))
          .map(([name, step]) => `${file}: ${name} ${step}`)
      })
    expect(unknown).toEqual([])
  })

  it('workflows: they parse, and what they run exists', () => {
    const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> }
    const wrong = readdirSync(join(ROOT, '.github/workflows')).flatMap((file) => {
      const { on, jobs } = parse(text(`.github/workflows/${file}`)) as Workflow
      const steps = Object.values(jobs).flatMap((job) => job.steps)
      const commands = steps.flatMap(({ run = '', with: given = {} }) => [run, ...Object.values(given)])
      return [
        ...(on === undefined ? ['never runs'] : []),
        ...Object.entries(jobs)
          .filter(([, job]) => job['runs-on'] === undefined || job['timeout-minutes'] === undefined)
          .map(([name]) => `${name} has no machine or no limit`),
        ...steps
          .filter((step) => (step.uses === undefined) === (step.run === undefined))
          .map(() => 'odd step'),
        ...commands
          .flatMap((command) => [...String(command).matchAll(/npm run ([\w:]+)/g)])
          .filter(([, name = '']) => scripts[name] === undefined)
          .map(([command]) => `no such script: ${command}`),
      ].map((what) => `${file}: ${what}`)
    })
    expect(wrong).toEqual([])
  })

  it('CI runs on the oldest Node that the packages promise, and on 22', () => {
    const { jobs } = parse(text('.github/workflows/ci.yml')) as Workflow
    const { matrix } = jobs.test?.strategy ?? {}
    expect(matrix?.node).toEqual(expect.arrayContaining(['20.19', '22']))
    expect(jobs.test?.steps.map(({ run }) => run)).toContain('.ci/run')
  })
})

interface Workflow {
  on?: unknown
  jobs: Record<
    string,
    {
      'runs-on'?: string
      'timeout-minutes'?: number
      strategy?: { matrix?: { node?: string[] } }
      steps: { uses?: string; run?: string; with?: Record<string, unknown> }[]
    }
  >
}
