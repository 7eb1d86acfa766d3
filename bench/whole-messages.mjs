/** (g) whole messages through `Bot`, and (h) what durability costs: see run.mjs. */
import { launch } from './processes.mjs'

const MANY = { chats: 10_000, inFlight: 64 }
const KIB = 1024
/** Of each kind of idle-chats.mjs: what the report calls it, and how many. Flows take longer. */
const IDLE = {
  plain: { label: 'one message, one reply', chats: 200_000, warmUp: 50_000 },
  ended: { label: 'a persistent flow that ended', chats: 50_000, warmUp: 30_000 },
  waiting: { label: 'a persistent flow that waits for an answer', chats: 50_000, warmUp: 30_000 },
  kept: { label: 'one message, one reply, 1 KiB kept on purpose', chats: 200_000, warmUp: 50_000 },
}

export async function wholeMessages({ interleave, record }) {
  const ratio = await interleave(
    'one process, 64 in flight',
    [
      { contender: 'botmesh', mode: 'full', ...MANY },
      { contender: 'bot', mode: 'flow', ...MANY },
      { contender: 'grammy', mode: 'alone', ...MANY },
      { contender: 'bot', mode: 'alone', ...MANY },
    ],
    1,
  )
  record.note('(g) a persistent flow step on Redis / a bare turn with everything on', ratio(1, 0))
  record.note('(g) a persistent flow step on Redis / grammY in one process without Redis', ratio(1, 2))
  record.require('(g) Bot without coordination / grammY with sequentialize', ratio(3, 2), '>=', 0.5)
  await idleChats(record)
}

/** What chats that spoke leave on the heap, and whether this look would see what they should not. */
async function idleChats(record) {
  const heap = {}
  for (const [kind, { chats, warmUp }] of Object.entries(IDLE)) {
    const child = launch('idle-chats.mjs', { kind, chats, warmUp }, ['--expose-gc'])
    heap[kind] = (await child.next('heap')).heap
    await child.gone()
  }
  record.figures(
    'heap per chat without coordination',
    'bytes',
    Object.entries(IDLE).map(([kind, { label }]) => ({ label, value: heap[kind], ours: kind !== 'kept' })),
  )
  record.require('(g) heap per idle chat without coordination', heap.plain, '<=', KIB, ' bytes')
  record.require('(g) heap per chat whose persistent flow ended', heap.ended, '<=', KIB, ' bytes')
  record.require('(g) of 1 KiB kept per chat on purpose, seen', heap.kept - heap.plain, '>=', KIB, ' bytes')
}

export async function durability({ interleave, record }) {
  const ratio = await interleave(
    'one process, 64 in flight',
    [
      { contender: 'bot', mode: 'flow', ...MANY },
      { contender: 'bot', mode: 'durable', ...MANY },
    ],
    1,
  )
  record.require('(h) with durability / coordination alone', ratio(1, 0), '>=', 1 / 3)
  const one = { chats: 200, inFlight: 1 }
  await interleave('one process, one in flight', [{ contender: 'bot', mode: 'durable', ...one }], 1)
}
