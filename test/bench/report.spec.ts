/** The benchmarks' results, charts and tables: what a run keeps, what it leaves alone, and what is made of it. */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { onTestEnd } from '../support/index.js'

const SAMPLE = 'test/bench/sample-results.json'
const run = (...args: string[]) => promisify(execFile)(process.execPath, args, { timeout: 100_000 })

interface Results {
  format: number
  benchmarks: Record<
    string,
    { conditions: { at: string; anywhere: boolean }; groups: Array<{ rows: Array<{ turns: number }> }> }
  >
}

const readJson = async (file: string) => JSON.parse(await readFile(file, 'utf8')) as Results

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'botmesh-report-'))
  onTestEnd(() => rm(dir, { recursive: true, force: true }))
  return dir
}

async function report(): Promise<{ text: string; charts: Map<string, string> }> {
  const dir = await folder()
  await run('bench/report.mjs', SAMPLE, '--out', dir)
  const charts = new Map<string, string>()
  for (const name of await readdir(join(dir, 'charts')))
    charts.set(name, await readFile(join(dir, 'charts', name), 'utf8'))
  return { text: await readFile(join(dir, 'report.md'), 'utf8'), charts }
}

/** Tags that are not closed, or closed without being open. */
function unbalanced(xml: string): string[] {
  const open: string[] = []
  const wrong: string[] = []
  for (const [, closes = '', name = '', empty = ''] of xml.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/gi)) {
    if (empty === '/') continue
    if (closes === '') open.push(name)
    else if (open.pop() !== name) wrong.push(name)
  }
  return [...wrong, ...open]
}

describe('the report of the benchmarks', () => {
  it('names the command, the conditions and every figure, whatever holds or not', async () => {
    const { text } = await report()
    expect(text).toContain('`node bench/run.mjs --only c --rounds 3 --ms 500`')
    expect(text).toContain('2026-01-02')
    expect(text.match(/\*\*Not quiet\*\*/g)).toHaveLength(1)
    expect(text).toMatch(/\| bullmq \(does not exclude\) +\| 8,000 +\| 7,000 – 9,000 .*\| 17 +\| 4 +\|/)
    expect(text).toMatch(/\| \(b\) hand-off median \/ raw-push +\| ≤ 1\.40 +\| 1\.50 +\| missed +\|/)
    expect(text).toMatch(/\| \(b\) a ratio that is small +\| +\| 0\.012 +\|/)
    expect(text).toMatch(/### \(a\) throughput.*\n\nNot among these results: `node bench\/run\.mjs --only a /)
  })

  it('shows each group in a chart that is well formed and can be read without eyes or colour', async () => {
    const { text, charts } = await report()
    expect([...charts.keys()].toSorted()).toEqual(['b-figures1.svg', 'c-cost1.svg', 'c-rates1.svg'])
    for (const [name, svg] of charts) {
      expect(text).toContain(`(charts/${name})`)
      expect(unbalanced(svg)).toEqual([])
      expect(svg).toMatch(/<svg [^>]*role="img" aria-labelledby="title desc"/)
    }
    const svg = charts.get('c-rates1.svg') ?? ''
    expect(svg).toContain('<title id="title">(c) contended throughput: 50 chats &amp; &lt;two&gt; processes')
    expect(svg).toContain('botmesh plain 40,000 turns a second; bullmq 8,000 turns a second')
    expect(svg).toMatch(/>botmesh plain<\/text>/)
    expect(svg).toMatch(/<rect [^>]*fill="url\(#dotted\)"/)
  })

  it('a run replaces its own entry of a file, leaves the others, and the report can be made of it', async () => {
    const file = join(await folder(), 'results.json')
    await copyFile(SAMPLE, file)
    // Requirements are missed in so short a run, which its exit code says.
    await run(
      ...['--conditions=@botmesh/source', '--import', './test/support/source-loader.mjs', 'bench/run.mjs'],
      ...['--only', 'f', '--rounds', '1', '--ms', '100', '--warm-up', '50', '--anywhere', '--json', file],
    ).catch((error: { stdout: string }) => expect(error.stdout).toContain('requirements missed'))
    const { benchmarks } = await readJson(file)
    expect(Object.keys(benchmarks)).toEqual(['b', 'c', 'f anywhere'])
    const { 'f anywhere': measured, ...others } = benchmarks
    expect(others).toEqual((await readJson(SAMPLE)).benchmarks)
    expect(measured?.groups[0]?.rows.every(({ turns }) => turns > 0)).toBe(true)
    const out = await folder()
    await run('bench/report.mjs', file, '--out', out)
    const text = await readFile(join(out, 'report.md'), 'utf8')
    expect(text.match(/^`node bench\/run\.mjs --only [bc] .*`, 2026-01-02: /gm)).toHaveLength(2)
    const command = 'node bench/run.mjs --only f --rounds 1 --ms 100 --warm-up 50 --anywhere'
    expect(text).toContain(`\`${command}\`, ${measured?.conditions.at.slice(0, 10)}: `)
  }, 110_000)

  it('what a document tells of benchmarks that a file does not have stays, with its date, command and charts', async () => {
    const out = await folder()
    await run('bench/report.mjs', SAMPLE, '--out', out)
    const { benchmarks, ...results } = await readJson(SAMPLE)
    const c = benchmarks.c
    if (c === undefined) throw new Error(`${SAMPLE} has no (c)`)
    const later = { ...c, conditions: { ...c.conditions, at: '2026-05-06T00:00:00.000Z' } }
    const anywhere = { ...c, conditions: { ...c.conditions, anywhere: true } }
    const reportOf = async (some: Results['benchmarks']) => {
      const file = join(await folder(), 'some.json')
      await writeFile(file, JSON.stringify({ ...results, benchmarks: some }))
      await run('bench/report.mjs', file, '--out', out)
      return readFile(join(out, 'report.md'), 'utf8')
    }
    await reportOf({ 'c anywhere': anywhere })
    const text = await reportOf({ c: later })
    expect(text.match(/^### \([bc]\).*/gm)).toHaveLength(3)
    expect(text).toContain('`node bench/run.mjs --only b --rounds 3 --ms 500`, 2026-01-02')
    expect(text).toMatch(/\| \(b\) hand-off median \/ raw-push +\| ≤ 1\.40 +\| 1\.50 +\| missed +\|/)
    expect(text.match(/`node bench\/run\.mjs --only c --rounds 3 --ms 500`, \S+/g)).toEqual([
      '`node bench/run.mjs --only c --rounds 3 --ms 500`, 2026-05-06:',
      '`node bench/run.mjs --only c --rounds 3 --ms 500`, 2026-01-02:',
    ])
    const charts = [...text.matchAll(/\(charts\/(\S+)\)/g)].map(([, name = '']) => name)
    expect((await readdir(join(out, 'charts'))).toSorted()).toEqual(charts.toSorted())
    expect(charts).toContain('b-figures1.svg')
  })

  it('a file that holds something else is left as it is, and the error says what to do', async () => {
    const file = join(await folder(), 'other.json')
    await writeFile(file, '[]')
    await expect(run('bench/report.mjs', file)).rejects.toThrow('name another file, or remove it')
    expect(await readFile(file, 'utf8')).toBe('[]')
  })
})
