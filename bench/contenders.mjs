/**
 * Who takes part: which process measures it, what it claims, which the oracle holds it to, and what a reader of its
 * figures should know. A lock is measured by process.mjs, a queue by queue-process.mjs.
 */

/**
 * @typedef {object} Contender
 * @property {string} process the script that measures it
 * @property {boolean} excludes claims that turns of one chat never overlap
 * @property {boolean} orders claims that turns of one chat begin in their order
 * @property {boolean} [ours]
 * @property {string} [about] for the report
 */

const lock = { process: 'process.mjs', excludes: true, orders: false }
const queue = { process: 'queue-process.mjs' }

/** @type {Record<string, Contender>} */
export const CONTENDERS = {
  botmesh: { ...lock, orders: true, ours: true },
  bot: { ...lock, ours: true },
  'store-lock': { ...lock, orders: true, ours: true, about: 'the fenced lock of RedisStore' },
  grammy: { ...lock, about: 'grammY with sequentialize, one process, nothing shared' },
  raw2: {
    ...lock,
    excludes: false,
    about: 'the floor: two trivial script calls a turn; does not wait, so it does not exclude',
  },
  'redis-semaphore': { ...lock, about: 'its Mutex, polling every 10 ms, which is its default' },
  redlock: { ...lock, about: 'one server, retries every 10 to 15 ms' },
  'redlock-universal': { ...lock, about: 'one server, retries every 10 ms' },
  bullmq: {
    ...queue,
    excludes: false,
    orders: false,
    about:
      'a queue; groups are in its commercial edition only, so messages of one chat overlap: what a queue costs at the least',
  },
  groupmq: { ...queue, excludes: true, orders: true, about: 'a queue with one group for each chat' },
}

/** Stops a measurement in which a contender did what it claims never to do, or not everything was looked at. */
export function hold(name, { overlaps, disorders, unjudged }) {
  if (unjudged > 0) throw new Error(`${name}: the oracle had no room to note ${unjudged} turns; give it more`)
  const { excludes, orders } = CONTENDERS[name]
  if (excludes && overlaps > 0) throw new Error(`${name}: ${overlaps} overlapping turns`)
  if (orders && disorders > 0) throw new Error(`${name}: ${disorders} turns out of order`)
}
