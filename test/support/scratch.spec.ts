/** Where a test run writes: a place of its own, which is gone when the run is, however it ended. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'

const SCRATCH = new URL('../../tools/scratch.mjs', import.meta.url).href

interface Seen {
  pid: number
  before: string
  during: string
  after: string
}

/** In a process of its own, with `then` done while it has its place. */
function run(then: string, env: Record<string, string> = {}): Seen {
  const { TMPDIR: _, ...inherited } = process.env
  const script = `
    import { writeFileSync } from 'node:fs'
    import { tmpdir } from 'node:os'
    import { scratchInMemory } from '${SCRATCH}'
    const before = tmpdir()
    const end = scratchInMemory()
    const during = tmpdir()
    const tell = (after) => process.stdout.write(JSON.stringify({ pid: process.pid, before, during, after }))
    ${then}`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...inherited, ...env },
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Seen
}

/** Of runs that have one: a system without memory to write to has none, nor has one with too little. */
const placesOf = ({ pid, during }: Seen): string[] =>
  existsSync('/dev/shm')
    ? readdirSync('/dev/shm').filter((name) => name.includes(`-${pid}-`) && during.includes(name))
    : []

describe('scratchInMemory', () => {
  it('is the place for temporary files until it is removed with what is in it', () => {
    const seen = run("if (during !== before) writeFileSync(during + '/file', ''); end(); tell(tmpdir())")
    expect(seen.after).toBe(seen.before)
    expect(placesOf(seen)).toEqual([])
  })

  it('of a run that was killed is removed by the next one', () => {
    const killed = run("tell(during); process.kill(process.pid, 'SIGKILL')")
    expect(placesOf(killed).length).toBe(killed.during === killed.before ? 0 : 1)
    run('end(); tell(tmpdir())')
    expect(placesOf(killed)).toEqual([])
  })

  it('is not made where the user has chosen a place', () => {
    const seen = run('end(); tell(tmpdir())', { TMPDIR: '/' })
    expect(seen).toMatchObject({ before: '/', during: '/', after: '/' })
  })
})
