/** (g) whole messages through `Bot`, and (h) what durability costs: see run.mjs. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** @param {{ interleave: Function, require: Function }} tools of run.mjs */
export async function wholeMessages(server, { interleave, require }) {
  console.log('(g) a whole message through Bot, one process, 64 in flight')
  const many = { chats: 10_000, inFlight: 64 }
  const ratio = await interleave(
    server,
    [
      { contender: 'botmesh', mode: 'full', ...many },
      { contender: 'bot', mode: 'flow', ...many },
      { contender: 'grammy', mode: 'alone', ...many },
      { contender: 'bot', mode: 'alone', ...many },
    ],
    1,
  )
  console.log(
    `  a persistent flow step on Redis: ${ratio(1, 0).toFixed(2)} of a bare turn with everything on,`,
  )
  console.log(`  ${ratio(1, 2).toFixed(3)} of grammY in one process without Redis`)
  require('(g) Bot without coordination / grammY with sequentialize', ratio(3, 2), '>=', 0.5)
  const script = fileURLToPath(new URL('./idle-chats.mjs', import.meta.url))
  const bytes = Number(execFileSync(process.execPath, ['--expose-gc', script], { encoding: 'utf8' }))
  require('(g) heap per idle chat without coordination', bytes, '<=', 1024, ' bytes')
}

export async function durability(server, { interleave, require }) {
  console.log(
    '(h) a persistent flow step with one send: coordination alone, and with durability; one process',
  )
  const many = { chats: 10_000, inFlight: 64 }
  const ratio = await interleave(
    server,
    [
      { contender: 'bot', mode: 'flow', ...many },
      { contender: 'bot', mode: 'durable', ...many },
    ],
    1,
  )
  require('(h) with durability / coordination alone', ratio(1, 0), '>=', 1 / 3)
  const one = { chats: 200, inFlight: 1 }
  await interleave(server, [{ contender: 'bot', mode: 'durable', ...one }], 1)
}
