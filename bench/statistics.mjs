/** Medians and quantiles, for all benchmarks alike. */

/** @param {readonly number[]} numbers at least one */
export function quantile(numbers, q) {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]
}

export const median = (numbers) => quantile(numbers, 0.5)

/** What a chart shows of several rounds: the middle one, the least and the most. */
export function spread(numbers) {
  return { value: median(numbers), low: Math.min(...numbers), high: Math.max(...numbers) }
}
