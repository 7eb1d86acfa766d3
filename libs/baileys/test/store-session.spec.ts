/** Z9, end to end: the real client against the double, its session in a store that replicas share. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { MemoryStore } from '@botmesh/core'
import { importFolder } from '@botmesh/baileys'
import { Bench, FencedSink, forgetSeed, isOpen, PHONE } from './support/bench.js'
import { ReplicaStore } from './support/store-faults.js'

afterAll(forgetSeed)

let bench: Bench
let shared: MemoryStore
let fence = 1
beforeEach(async () => {
  bench = await Bench.start()
  shared = new MemoryStore()
})
afterEach(async () => {
  await bench.stop()
})

/** A replica that leads from now on. */
function replica() {
  const store = new ReplicaStore(shared)
  const provider = bench.provider({ store, folder: undefined })
  return { store, provider, sink: new FencedSink(++fence) }
}

/** A paired session in the store, with nothing connected. */
async function paired(): Promise<void> {
  await bench.paired()
  await importFolder({ folder: bench.folder, session: 'tienda', store: shared })
}

async function start(one: ReturnType<typeof replica>) {
  await one.provider.start(one.sink, new AbortController().signal)
  await one.sink.until(isOpen)
  return one
}

describe('Z9: the session in the store', () => {
  it('paired on one replica, connected on the next without a QR code, in both directions', async () => {
    const first = replica()
    await bench.pair(first.provider, first.sink)
    await bench.whatsapp.write(bench.ana, PHONE, 'uno')
    await first.sink.until((sink) => sink.messages.length === 1)
    // What is accepted and not acknowledged comes again, for the runtime to deduplicate.
    while (bench.whatsapp.undelivered.length > 0) await once(bench.whatsapp, 'receipt')
    await first.provider.stop()
    await bench.gone()
    const next = await start(replica())
    expect(next.sink.pairings).toEqual([])
    await bench.whatsapp.write(bench.ana, PHONE, 'dos')
    await next.sink.until((sink) => sink.messages.length === 1)
    await next.provider.send({ chatId: bench.ana.jid }, { text: 'tres' })
    expect(next.sink.bodies).toEqual(['dos'])
    expect(bench.whatsapp.received.at(-1)?.message.extendedTextMessage?.text).toBe('tres')
    expect([...first.sink.errors, ...next.sink.errors]).toEqual([])
  })

  it('I4: a former leader that does not know it yet overwrites nothing, and closes for good', async () => {
    await paired()
    const old = await start(replica())
    const next = await start(replica())
    await old.sink.until(({ states }) => states.at(-1)?.status === 'closed')
    // Thrown out by WhatsApp or refused by the store, whichever comes first.
    expect(old.sink.states.at(-1)).toMatchObject({ final: true })
    await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await next.sink.until((sink) => sink.messages.length === 1)
    expect(next.sink.errors).toEqual([])
  })

  it('logged out: the store forgets the keys, and the next start shows a QR code', async () => {
    await paired()
    bench.whatsapp.refuseLogins = 401
    const second = replica()
    await second.provider.start(second.sink, new AbortController().signal)
    await second.sink.until(({ states }) => states.at(-1)?.status === 'closed')
    await second.provider.stop()
    bench.whatsapp.refuseLogins = undefined
    const third = replica()
    await bench.pair(third.provider, third.sink)
    expect(third.sink.pairings[0]?.kind).toBe('qr')
  })

  it('no key and no credential is in a log or an error', async () => {
    await paired()
    const one = await start(replica())
    await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await one.sink.until((sink) => sink.messages.length === 1)
    one.store.failing.add(one.store.writes + 1)
    await bench.whatsapp.write(bench.ana, PHONE, 'otra')
    await one.sink.until((sink) => sink.messages.length === 2)
    await one.provider.stop()
    const said = JSON.stringify([one.sink.logs, one.sink.errors.map(String), one.sink.errors])
    expect(said).not.toMatch(/privKey|private|noiseKey|advSecretKey|"data":"/)
  })
})

describe('scenario 22: the leader is killed while it writes credentials', () => {
  it('at whichever write: the standby connects without a QR code and reads what comes', async () => {
    await paired()
    let at = 0
    for (let dead = true; dead;) {
      at += 1
      const leader = replica()
      leader.store.dies = { at, done: at % 2 === 0 ? 'before' : 'after' }
      void leader.provider.start(leader.sink, new AbortController().signal).catch(() => {})
      await Promise.race([leader.sink.until(isOpen), leader.store.died])
      await bench.whatsapp.write(bench.ana, PHONE, `before ${at}`)
      const got = leader.sink.until(({ bodies }) => bodies.includes(`before ${at}`))
      await Promise.race([got, leader.store.died])
      const answer = leader.provider.send({ chatId: bench.ana.jid }, { text: 'ok' }).catch(() => undefined)
      dead = await Promise.race([answer.then(() => false), leader.store.died.then(() => true)])
      // A dead process has no connection, and makes none.
      const gone = leader.provider.stop()
      bench.whatsapp.drop()
      const next = await start(replica())
      expect(next.sink.pairings).toEqual([])
      await bench.whatsapp.write(bench.ana, PHONE, `after ${at}`)
      await next.sink.until(({ bodies }) => bodies.includes(`after ${at}`))
      leader.store.bury()
      await Promise.all([gone, next.provider.stop()])
      await bench.gone()
    }
    expect(at).toBeGreaterThan(4)
  }, 40_000)
})
