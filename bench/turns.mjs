/** (a) throughput, (c) contended throughput, (f) what a commit costs: turns by themselves, without a bot. */

const MANY = { chats: 10_000, inFlight: 64 }
const FEW = { chats: 50, inFlight: 64 }
const ONE = { chats: 10_000, inFlight: 1 }
const RIVALS = ['redis-semaphore', 'redlock', 'redlock-universal', 'groupmq', 'bullmq']

export async function throughput({ interleave, record }) {
  const ratio = await interleave('two processes, 10,000 chats, 64 turns in flight each', [
    { contender: 'raw2', ...MANY },
    { contender: 'botmesh', mode: 'full', ...MANY },
    { contender: 'botmesh', mode: 'plain', ...MANY },
    ...RIVALS.map((contender) => ({ contender, ...MANY })),
  ])
  record.require('(a) full / raw2', ratio(1, 0), '>=', 1.5)
  record.require('(a) without inbound id / raw2', ratio(2, 0), '>=', 2)
  record.require('(a) full / redis-semaphore', ratio(1, 3), '>=', 2)
  record.require('(a) full / redlock', ratio(1, 4), '>=', 3)
  for (const n of [2, 3, 4]) record.note(`(a) full / ${RIVALS[n]}`, ratio(1, 3 + n))
  const single = await interleave(
    'one process, one turn in flight',
    [
      { contender: 'raw2', ...ONE },
      { contender: 'botmesh', mode: 'full', ...ONE },
    ],
    1,
  )
  record.require('(a) one in flight: full / raw2', single(1, 0), '>=', 0.8)
}

export async function contended({ interleave, record }) {
  const ratio = await interleave('50 contended chats, two processes, 64 turns in flight each', [
    { contender: 'redis-semaphore', ...FEW },
    { contender: 'botmesh', mode: 'plain', ...FEW },
    ...RIVALS.slice(1).map((contender) => ({ contender, ...FEW })),
  ])
  record.require('(c) botmesh / redis-semaphore', ratio(1, 0), '>=', 1.7)
  for (const [n, rival] of RIVALS.slice(1).entries()) record.note(`(c) botmesh / ${rival}`, ratio(1, 2 + n))
}

export async function commit({ interleave, record }) {
  const ratio = await interleave('two processes, 10,000 chats, 64 turns in flight each', [
    { contender: 'botmesh', mode: 'full', ...MANY },
    { contender: 'botmesh', mode: 'state', ...MANY },
    { contender: 'botmesh', mode: 'plain', ...MANY },
  ])
  record.require('(f) with a checkpoint / without', ratio(1, 0), '>=', 0.8)
  record.note('(f) with a committed inbound id / without', ratio(0, 2))
  const single = await interleave(
    'one process, one turn in flight',
    [
      { contender: 'botmesh', mode: 'full', ...ONE },
      { contender: 'botmesh', mode: 'state', ...ONE },
    ],
    1,
  )
  record.note('(f) one in flight: with a checkpoint / without', single(1, 0))
}
