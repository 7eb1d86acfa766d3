/** Z9, end to end on a kind of store: the real client against the double, its session where replicas share it. */
import { once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { importFolder, StoreStorage, type BaileysProvider } from '@botmesh/baileys'
import { Bench, FencedSink, forgetSeed, isOpen, PHONE } from './bench.js'
import type { SessionBed, SessionPlace } from './place.js'
import { ReplicaStore } from './replica-store.js'
import { SessionSecrets } from './secrets.js'

interface Replica {
  store: ReplicaStore
  provider: BaileysProvider
  sink: FencedSink
}

export function sessionSuite(place: SessionPlace, limitMs = 60_000): void {
  afterAll(forgetSeed)

  let bench: Bench
  let bed: SessionBed
  let fence = 1
  beforeEach(async () => {
    bench = await Bench.start()
    bed = await place.bed()
  })
  afterEach(async () => {
    await bench.stop()
    await bed.close()
  })

  /** One that leads from now on. @param secrets learns what is in its session. */
  async function replica(secrets?: SessionSecrets): Promise<Replica> {
    const store = new ReplicaStore(await bed.store())
    const kept = secrets === undefined ? { store } : { storage: secrets.watching(new StoreStorage(store)) }
    const provider = bench.provider({ ...kept, folder: undefined })
    return { store, provider, sink: new FencedSink(++fence) }
  }

  /** A paired session in the store, with nothing connected. */
  async function paired(): Promise<void> {
    await bench.paired()
    await importFolder({ folder: bench.folder, session: 'tienda', store: await bed.store() })
  }

  async function started(): Promise<Replica> {
    const one = await replica()
    await one.provider.start(one.sink, new AbortController().signal)
    await one.sink.until(isOpen)
    return one
  }

  describe(`Z9: the session of a connection in a store: ${place.name}`, () => {
    it('paired on one replica, connected on the next without a QR code, in both directions', async () => {
      const first = await replica()
      await bench.pair(first.provider, first.sink)
      await bench.whatsapp.write(bench.ana, PHONE, 'uno')
      await first.sink.until((sink) => sink.messages.length === 1)
      // What is accepted and not acknowledged comes again, for the runtime to deduplicate.
      while (bench.whatsapp.undelivered.length > 0) await once(bench.whatsapp, 'receipt')
      await first.provider.stop()
      await bench.gone()
      const next = await started()
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
      const old = await started()
      const next = await started()
      await old.sink.until(({ states }) => states.at(-1)?.status === 'closed')
      // Thrown out by WhatsApp or refused by the store, whichever comes first.
      expect(old.sink.states.at(-1)).toMatchObject({ final: true })
      await bench.whatsapp.write(bench.ana, PHONE, 'hola')
      await next.sink.until((sink) => sink.messages.length === 1)
      expect(next.sink.errors).toEqual([])
    })

    it('scenario 19: logged out: the store forgets the keys, and the next start shows a QR code', async () => {
      await paired()
      bench.whatsapp.refuseLogins = 401
      const second = await replica()
      await second.provider.start(second.sink, new AbortController().signal)
      await second.sink.until(({ states }) => states.at(-1)?.status === 'closed')
      await second.provider.stop()
      bench.whatsapp.refuseLogins = undefined
      const third = await replica()
      await bench.pair(third.provider, third.sink)
      expect(third.sink.pairings[0]?.kind).toBe('qr')
    })

    it('no key and no credential is in a log, an event or an error', async () => {
      const secrets = new SessionSecrets()
      await paired()
      const { store, provider, sink } = await replica(secrets)
      await provider.start(sink, new AbortController().signal)
      await sink.until(isOpen)
      await bench.whatsapp.write(bench.ana, PHONE, 'hola')
      await sink.until(({ messages }) => messages.length === 1)
      // As often as it tries.
      for (let n = 1; n <= 3; n++) store.failing.add(store.writes + n)
      await bench.whatsapp.write(bench.ana, PHONE, 'otra')
      await sink.until(({ bodies }) => bodies.includes('otra'))
      await provider.stop()
      expect(secrets.size).toBeGreaterThan(15)
      const { messages, states, errors, logs } = sink
      expect(errors.length).toBeGreaterThan(0)
      const said = { messages, states, errors, logs }
      expect(secrets.foundIn(said)).toEqual([])
      const names = JSON.stringify([logs, errors.map(String), errors])
      expect(names).not.toMatch(/privKey|private|noiseKey|advSecretKey|"data":"/)
    })

    it(
      'scenario 22: the leader is killed at whichever write of credentials: the standby connects without a QR code and reads what comes',
      async () => {
        await paired()
        let at = 0
        for (let dead = true; dead;) {
          at += 1
          const leader = await replica()
          leader.store.dies = { at, done: at % 2 === 0 ? 'before' : 'after' }
          void leader.provider.start(leader.sink, new AbortController().signal).catch(() => {})
          await Promise.race([leader.sink.until(isOpen), leader.store.died])
          await bench.whatsapp.write(bench.ana, PHONE, `before ${at}`)
          const got = leader.sink.until(({ bodies }) => bodies.includes(`before ${at}`))
          await Promise.race([got, leader.store.died])
          const answer = leader.provider
            .send({ chatId: bench.ana.jid }, { text: 'ok' })
            .catch(() => undefined)
          dead = await Promise.race([answer.then(() => false), leader.store.died.then(() => true)])
          // A dead process has no connection, and makes none.
          const gone = leader.provider.stop()
          bench.whatsapp.drop()
          const next = await started()
          expect(next.sink.pairings).toEqual([])
          await bench.whatsapp.write(bench.ana, PHONE, `after ${at}`)
          await next.sink.until(({ bodies }) => bodies.includes(`after ${at}`))
          leader.store.bury()
          await Promise.all([gone, next.provider.stop()])
          await bench.gone()
        }
        expect(at).toBeGreaterThan(4)
      },
      limitMs,
    )
  })
}
