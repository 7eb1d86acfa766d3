/** Rounds of several contenders, one after the other, so that all meet the same weather. */
import { CONTENDERS, hold } from './contenders.mjs'
import { measureTurns } from './processes.mjs'
import { median, spread } from './statistics.mjs'

/**
 * @param {{ server: object, record: import('./record.mjs').Record, rounds: number, ms: number, warmUpMs: number }} run
 * @returns {(title: string, jobs: object[], processes?: number) => Promise<(a: number, b: number) => number>} what it
 *   answers with compares two of the jobs: the median over the rounds of the ratio of their rates within each round
 */
export const interleaveFor =
  ({ server, record, rounds, ms, warmUpMs }) =>
  async (title, jobs, processes = 2) => {
    const results = jobs.map(() => [])
    for (let round = 0; round < rounds; round += 1) {
      for (const [n, job] of jobs.entries()) {
        const { notes: _, ...result } = await measureTurns(
          server,
          { prefix: `b${round}`, handlerMs: 0, warmUpMs, ms, ...job },
          processes,
        )
        results[n].push(result)
        hold(job.contender, result)
      }
    }
    record.rates(
      title,
      jobs.map((job, n) => summary(job, results[n])),
    )
    return (a, b) => median(results[a].map((one, round) => one.rate / results[b][round].rate))
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
