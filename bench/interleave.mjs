/** Rounds of several contenders, one after the other, so that all meet the same weather. */
import { CONTENDERS, hold } from './contenders.mjs'
import { measureTurns, ProcessFailed } from './processes.mjs'
import { median, spread } from './statistics.mjs'

/**
 * @param {{ server: object, record: import('./record.mjs').Record, rounds: number, ms: number, warmUpMs: number }} run
 * @returns {(title: string, jobs: object[], processes?: number) => Promise<(a: number, b: number) => number | undefined>} what
 *   it answers with compares two of the jobs: the median of the ratio of their rates within each round that both finished;
 *   undefined if there is none
 */
export const interleaveFor =
  ({ server, record, rounds, ms, warmUpMs }) =>
  async (title, jobs, processes = 2) => {
    const results = jobs.map(() => [])
    for (let round = 0; round < rounds; round += 1) {
      for (const [n, job] of jobs.entries()) {
        const shape = { prefix: `b${round}`, handlerMs: 0, warmUpMs, ms, ...job }
        results[n][round] = await attempt(record, { title, ...job, round, rounds }, async () => {
          const { notes: _, ...result } = await measureTurns(server, shape, processes)
          hold(job.contender, result)
          return result
        })
      }
    }
    record.rates(
      title,
      jobs.flatMap((job, n) => {
        const finished = results[n].filter((one) => one !== undefined)
        return finished.length > 0 ? [summary(job, finished)] : []
      }),
    )
    return (a, b) => {
      const rates = results[a].map((one, round) => [one?.rate, results[b][round]?.rate])
      const both = rates.filter((pair) => !pair.includes(undefined))
      return both.length > 0 ? median(both.map(([one, other]) => one / other)) : undefined
    }
  }

/**
 * One round of one contender. If its process fails, that is kept beside what is found of the others, whose numbers are
 * not lost by it; any other error ends the benchmark.
 *
 * @returns what `measure` answers, or undefined if a process failed
 */
export async function attempt(record, { title, contender, mode, round, rounds }, measure) {
  try {
    return await measure()
  } catch (error) {
    if (!(error instanceof ProcessFailed)) throw error
    const { ours = false } = CONTENDERS[contender]
    const label = labelOf({ contender, mode })
    record.failure({ title, label, contender, ours, round: round + 1, rounds, error: error.message })
    return undefined
  }
}

export const labelOf = ({ contender, mode }) => (mode ? `${contender} ${mode}` : contender)

function summary(job, all) {
  const { excludes, ours = false } = CONTENDERS[job.contender]
  const each = (name) => all.map((one) => one[name])
  const sum = (name) => each(name).reduce((total, one) => total + one, 0)
  return {
    ...{ label: labelOf(job), contender: job.contender, ours, excludes, rate: spread(each('rate')) },
    ...{ redisUs: median(each('redisUs')), clientUs: median(each('clientUs')) },
    ...{ scriptCalls: median(each('scriptCalls')), turns: sum('turns') },
    ...{ overlaps: sum('overlaps'), disorders: sum('disorders') },
  }
}
