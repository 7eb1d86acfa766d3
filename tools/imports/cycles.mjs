/** Finds import cycles. */

/**
 * @param {Map<string, Array<{ to: string, line: number }>>} graph
 * @returns {Array<Array<{ from: string, to: string, line: number }>>} one shortest cycle for each knot
 */
export function findCycles(graph) {
  const cycles = []
  const seen = new Set()
  for (const start of [...graph.keys()].sort()) {
    if (seen.has(start)) continue
    const cycle = shortestCycle(graph, start, seen)
    if (cycle === undefined) continue
    cycles.push(cycle)
    for (const { from } of cycle) seen.add(from)
  }
  return cycles
}

/**
 * Breadth first from `start` back to itself.
 * @param {Map<string, Array<{ to: string, line: number }>>} graph
 * @param {string} start
 * @param {Set<string>} leftOut
 */
function shortestCycle(graph, start, leftOut) {
  /** @type {Map<string, { from: string, to: string, line: number }>} how each file was reached */
  const reached = new Map()
  const queue = [start]
  for (let from = queue.shift(); from !== undefined; from = queue.shift()) {
    for (const { to, line } of graph.get(from) ?? []) {
      if (leftOut.has(to) || reached.has(to)) continue
      reached.set(to, { from, to, line })
      if (to === start) return wayBack(reached, start)
      queue.push(to)
    }
  }
  return undefined
}

/**
 * @param {Map<string, { from: string, to: string, line: number }>} reached
 * @param {string} start
 */
function wayBack(reached, start) {
  const way = []
  for (let step = reached.get(start); step !== undefined; step = reached.get(step.from)) {
    way.unshift(step)
    if (step.from === start) break
  }
  return way
}
