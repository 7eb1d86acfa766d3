/** The benchmarks' processes: what they found arrives whole, and one that dies takes nobody else's numbers along. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from '@jest/globals'

interface Rounds {
  entry: {
    failures: Array<{ contender: string; round: number; ours: boolean; error: string }>
    groups: Array<{ rows: Array<{ contender: string; turns: number }> }>
    verdicts: Array<{ value?: number; holds: boolean }>
  }
  text: string
  lines: string[]
  exitCode: number
}

async function side<T>(name: string, ...args: unknown[]): Promise<T> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['bench/checks/processes.mjs', name, ...args.map((arg) => JSON.stringify(arg))],
    { timeout: 60_000 },
  )
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as T
}

const turns = ({ entry }: Rounds) =>
  entry.groups.flatMap(({ rows }) => rows.map((one) => [one.contender, one.turns]))

describe('processes of the benchmarks', () => {
  it('a queue hands in its result whole, however late it is read', async () => {
    const found = await side<{ turns: number; bytes: number }>('late')
    // More than the system keeps between two processes, or nothing is proved.
    expect(found.bytes).toBeGreaterThan(500_000)
    expect(found.bytes).toBe(found.turns * 5 * 8)
  }, 70_000)

  it("another's process that dies in a round is named with its exit code and last words; all else is kept", async () => {
    const found = await side<Rounds>('rounds', [], ['b1'])
    expect(turns(found)).toEqual([
      ['mine', 40],
      ['rival', 20],
    ])
    expect(found.entry.verdicts).toMatchObject([{ value: 1, holds: true }])
    expect(found.entry.failures).toMatchObject([{ contender: 'rival', round: 2, ours: false }])
    const error = found.entry.failures[0]?.error ?? ''
    expect(error).toMatch(
      /failing-process\.mjs ended before "turns" with exit code 1: Error: these are my last/,
    )
    expect(error).toMatch(/\n +at bench\/checks\/failing-process\.mjs:/)
    expect(error).not.toContain(process.cwd())
    expect(found.text).toMatch(
      /\*\*rival failed in round 2 of 2\*\*.*`.*exit code 1: Error: these are my last words`/,
    )
    expect(found.lines.join('\n')).toContain('(a) rival failed in round 2')
    expect(found.exitCode).toBe(0)
  }, 70_000)

  it('one of ours that dies in a round fails the run, and the others keep their numbers', async () => {
    const found = await side<Rounds>('rounds', ['b0'], [])
    expect(turns(found)).toEqual([
      ['mine', 20],
      ['rival', 40],
    ])
    expect(found.entry.failures).toMatchObject([{ contender: 'mine', round: 1, ours: true }])
    expect(found.exitCode).toBe(1)
  }, 70_000)

  it('a requirement beside one that died in every round is missed, not measured', async () => {
    const found = await side<Rounds>('rounds', [], ['b0', 'b1'])
    expect(turns(found)).toEqual([['mine', 40]])
    expect(found.entry.verdicts).toMatchObject([{ holds: false }])
    expect(found.text).toMatch(/\| mine \/ rival +\| ≥ 1\.00 +\| not measured +\| missed +\|/)
    expect(found.exitCode).toBe(1)
  }, 70_000)
})
