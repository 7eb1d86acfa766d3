/** (j) a fenced lock taken and released, beside the locks of three libraries; the same oracle as for turns. */

const RIVALS = ['redlock', 'redis-semaphore', 'redlock-universal']

/** @param {{ interleave: Function, require: Function }} tools of run.mjs */
export async function locks(server, { interleave, require }) {
  for (const [label, processes, inFlight] of [
    ['two processes, 64 in flight each', 2, 64],
    ['one process, one in flight', 1, 1],
  ]) {
    console.log(`(j) acquireLockFenced and release, 10,000 names, ${label}`)
    const shape = { chats: 10_000, inFlight, warmUpMs: 2000 }
    const ratio = await interleave(
      server,
      ['store-lock', ...RIVALS].map((contender) => ({ contender, ...shape })),
      processes,
    )
    for (const [n, rival] of RIVALS.entries()) {
      require(`(j) ${label}: fenced lock / ${rival}`, ratio(0, n + 1), '>=', 1)
    }
  }
}
