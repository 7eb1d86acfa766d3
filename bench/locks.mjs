/** (j) a fenced lock taken and released, beside the locks of three libraries; the same oracle as for turns. */

const RIVALS = ['redlock', 'redis-semaphore', 'redlock-universal']

export async function locks({ interleave, record }) {
  for (const [label, processes, inFlight] of [
    ['two processes, 64 in flight each', 2, 64],
    ['one process, one in flight', 1, 1],
  ]) {
    const shape = { chats: 10_000, inFlight, warmUpMs: 2000 }
    const ratio = await interleave(
      label,
      ['store-lock', ...RIVALS].map((contender) => ({ contender, ...shape })),
      processes,
    )
    for (const [n, rival] of RIVALS.entries()) {
      record.require(`(j) ${label}: fenced lock / ${rival}`, ratio(0, n + 1), '>=', 1)
    }
  }
}
