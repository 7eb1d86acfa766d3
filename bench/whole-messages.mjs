/** (g) whole messages through `Bot`, and (h) what durability costs: see run.mjs. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const MANY = { chats: 10_000, inFlight: 64 }

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
  const script = fileURLToPath(new URL('./idle-chats.mjs', import.meta.url))
  const bytes = Number(execFileSync(process.execPath, ['--expose-gc', script], { encoding: 'utf8' }))
  record.require('(g) heap per idle chat without coordination', bytes, '<=', 1024, ' bytes')
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
