/**
 * `npm run docs:reference`: writes docs/reference from the docstrings, a folder a package, as Markdown. Generated and not
 * committed: it would be 500 files that change with every docstring, and anybody has it from here in seconds.
 *
 * The compiler checks nothing here (`npm run typecheck` does). What TypeDoc cannot resolve is an error.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Application } from 'typedoc'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** @returns {string[]} sources of all that the packages export. */
export function entryPoints() {
  return readdirSync(`${ROOT}libs`).flatMap((name) => {
    const { exports } = JSON.parse(readFileSync(`${ROOT}libs/${name}/package.json`, 'utf8'))
    return Object.values(exports)
      .map((entry) => entry['@botmesh/source'])
      .filter((source) => source !== undefined)
      .map((source) => `${ROOT}libs/${name}/${source.replace(/^\.\//, '')}`)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const start = performance.now()
  const app = await Application.bootstrapWithPlugins({
    name: 'Botmesh',
    entryPoints: entryPoints(),
    tsconfig: `${ROOT}tsconfig.json`,
    out: `${ROOT}docs/reference`,
    plugin: ['typedoc-plugin-markdown'],
    readme: 'none',
    skipErrorChecking: true,
    excludePrivate: true,
    excludeInternal: true,
    disableSources: true,
    hideGenerator: true,
    logLevel: 'Warn',
    validation: { notExported: false, invalidLink: true, notDocumented: false },
  })
  const project = await app.convert()
  if (project === undefined) process.exit(1)
  await app.generateOutputs(project)
  if (app.logger.hasErrors()) process.exit(1)
  console.log(`docs/reference written in ${((performance.now() - start) / 1000).toFixed(1)} s`)
}
