/** Cases of what the harness does with processes, for its test (test/bench/processes.spec.ts); prints JSON as its last line. */
import { CONTENDERS } from '../contenders.mjs'
import { interleaveFor } from '../interleave.mjs'
import { launch } from '../processes.mjs'
import { conclude, Record } from '../record.mjs'
import { section } from '../report-sections.mjs'

const failing = { process: './checks/failing-process.mjs', excludes: false, orders: false }
CONTENDERS.rival = failing
CONTENDERS.mine = { ...failing, ours: true }

/** Nothing is asked of it but what every measurement asks. */
const server = {
  port: 0,
  admin: { flushall: async () => undefined },
  usage: async () => ({ cpuUs: 0, scripts: 0, calls: 0 }),
}

const CASES = {
  /** A result that no buffer between two processes holds, for a reader that looks late. */
  async late() {
    const job = {
      contender: '../checks/instant-queue',
      seed: 1,
      chats: 100,
      inFlight: 64,
      handlerMs: 0,
    }
    const child = launch('queue-process.mjs', { ...job, warmUpMs: 50, ms: 400 })
    await child.next('ready')
    child.go()
    await child.next('warm')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500)
    const { turns, notes } = await child.next('turns')
    await child.gone()
    return { turns, bytes: notes.byteLength }
  },

  /** Two rounds of two contenders. @param mine,rival the rounds in which each fails, as prefixes */
  async rounds(mine, rival) {
    const record = new Record('a', 'rounds')
    const interleave = interleaveFor({ server, record, rounds: 2, ms: 1, warmUpMs: 1 })
    const ratio = await interleave('group', [
      { contender: 'mine', fails: mine },
      { contender: 'rival', fails: rival },
    ])
    record.require('mine / rival', ratio(0, 1), '>=', 1)
    const { entry } = record
    entry.conditions = { at: '2026-01-02', command: 'x', loads: [0, 0], placed: 'anywhere', processors: 2 }
    return { entry, text: section('a', entry), ...conclude([entry], []) }
  },
}

const [name, ...args] = process.argv.slice(2)
console.log(JSON.stringify(await CASES[name](...args.map((arg) => JSON.parse(arg)))))
