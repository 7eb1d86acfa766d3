/**
 * Rewrites the last column of docs/coverage.md: which spec files have a test whose name cites the row's id.
 * The other columns are written by hand. Run it after adding tests: node tools/coverage.mjs
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { trackedFiles } from './project-files.mjs'
import { citedBy, testNames } from './test-names.mjs'

const FILE = fileURLToPath(new URL('../docs/coverage.md', import.meta.url))

/** What is not committed is not claimed. */
const known = new Set(trackedFiles({ fresh: false }))

/** @type {Map<string, Set<string>>} */
const files = new Map()
for (const { file, name } of testNames().filter((one) => known.has(one.file))) {
  for (const id of citedBy(name)) files.set(id, (files.get(id) ?? new Set()).add(file))
}

/** @param {string} file */
const link = (file) => `[${file.replace(/^libs\//, '').replace('/test/', '/')}](../${file})`

const lines = readFileSync(FILE, 'utf8').split('\n')
const fresh = lines.map((line) => {
  const [, id, words] = /^\| ([A-Z]\d+|scenario \d+) +\|([^|]*)\|/.exec(line) ?? []
  if (id === undefined || words === undefined) return line
  const found = [...(files.get(id) ?? [])].sort()
  return `| ${id} |${words}| ${found.length > 0 ? found.map(link).join(', ') : 'not yet'} |`
})
writeFileSync(FILE, fresh.join('\n'))
const open = fresh.filter((line) => line.endsWith('| not yet |')).length
console.log(`docs/coverage.md: ${open} ids without a test`)
