/**
 * Nothing of the session's keys leaves it: a whole life of the transport, pairing to errors, with everything kept that
 * it says to the bot, to its callers and to the console. Only what pairs a phone is shown, where it is meant to be.
 */
import { once } from 'node:events'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { MemoryStore, systemClock, type Clock } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { FolderStorage, StoreStorage, type BaileysOptions } from '@botmesh/baileys'
import { Bench, FencedSink, forgetSeed, isOpen, PHONE } from '../../../test/support/whatsapp-session/bench.js'
import { ReplicaStore } from '../../../test/support/whatsapp-session/replica-store.js'
import { SessionSecrets } from '../../../test/support/whatsapp-session/secrets.js'

/** What was printed. Watched before the transport is loaded, which filters the console: below that filter. */
const printed: unknown[] = []
for (const level of ['debug', 'log', 'info', 'warn', 'error'] as const) {
  jest.spyOn(console, level).mockImplementation((...args: unknown[]) => void printed.push(args))
}
jest.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0)

const hasty: Clock = {
  ...systemClock,
  setTimeout: (fn, ms, options) => systemClock.setTimeout(fn, ms >= 2000 ? ms : 5, options),
}

let bench: Bench
let secrets: SessionSecrets
const sinks: RecordingSink[] = []
const thrown: unknown[] = []
beforeEach(async () => {
  bench = await Bench.start()
  secrets = new SessionSecrets()
  for (const list of [printed, sinks, thrown]) list.length = 0
})
afterEach(() => bench.stop())
afterAll(forgetSeed)

function provider(options: Partial<BaileysOptions> = {}) {
  const storage = options.storage ?? new FolderStorage(bench.folder)
  return bench.provider({ folder: undefined, ...options, storage: secrets.watching(storage) })
}

function sink(fence?: number): RecordingSink {
  const made = fence === undefined ? new RecordingSink({ clock: hasty }) : new FencedSink(fence)
  sinks.push(made)
  return made
}

/** Starts one and waits until it is connected. */
async function connected(one: ReturnType<typeof provider>, its = sink()): Promise<RecordingSink> {
  await one.start(its, new AbortController().signal)
  await its.until(isOpen)
  return its
}

const keep = (error: unknown) => void thrown.push(error)
const closed = ({ states }: RecordingSink) => states.at(-1)?.status === 'closed'

/** All that was said, but what pairs a phone. */
function said(): unknown {
  const events = sinks.map(({ messages, states, errors, logs }) => ({ messages, states, errors, logs }))
  return { events, thrown, printed }
}

function expectNothingSaid(): void {
  expect(secrets.size).toBeGreaterThan(15)
  expect(secrets.foundIn(said())).toEqual([])
}

/** Replaces the text of a record with what `change` makes of it. */
async function damage(record: string, change: (text: string) => string): Promise<void> {
  const path = join(bench.folder, 'tienda', `${record}.json`)
  const text = await readFile(path, 'utf8')
  secrets.learn(record, text)
  expect(change(text)).not.toBe(text)
  await writeFile(path, change(text))
}

describe('Z9: secrets of the session', () => {
  it('the search finds a key however it is written, and part of one', () => {
    const key = Buffer.from(Array.from({ length: 32 }, (_, n) => (n * 37 + 11) % 256))
    secrets.learn(
      'creds',
      JSON.stringify({ noiseKey: { private: { type: 'Buffer', data: key.toString('base64') } } }),
    )
    const ways: unknown[] = [
      key,
      new Uint8Array(key),
      { key: key.toString('base64') },
      key.toString('hex'),
      key.toString('hex').toUpperCase(),
      `...${key.toString('base64').slice(8, 24)}...`,
      [...key].join(', '),
      new Error('failed', { cause: new Error(`unexpected ${key.toString('base64url')}`) }),
      Object.assign(new Error('failed'), { data: { key } }),
    ]
    for (const way of ways) expect(secrets.foundIn([way])).toEqual(['creds.noiseKey.private'])
    expect(secrets.foundIn(['noiseKey', 'creds.private', Buffer.alloc(32)])).toEqual([])
  })

  it('pairing by QR code, messages, every way that WhatsApp closes, refused and unanswered sends', async () => {
    const one = provider({ printQr: true, ackTimeout: '1s' })
    const its = sink()
    await bench.pair(one, its)
    const qr = its.pairings[0]?.value ?? ''
    // The code for the phone is the one thing that is shown, and nowhere else.
    expect(secrets.foundIn(qr)).toContain('creds.advSecretKey')
    expect(JSON.stringify(said())).not.toContain(qr)
    await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await its.until(({ messages }) => messages.length === 1)
    await one.send({ chatId: bench.ana.jid }, { text: 'buenas' })
    bench.whatsapp.refuseSends = '463'
    await one.send({ chatId: bench.ana.jid }, { text: 'no' }).catch(keep)
    bench.whatsapp.acknowledge = false
    await one.send({ chatId: bench.ana.jid }, { text: 'nada' }).catch(keep)
    await one.send({ chatId: 'nobody' }, { text: 'nadie' }).catch(keep)
    expect(thrown).toHaveLength(3)
    for (const code of [428, 408, 503, 515]) {
      const states = its.states.length
      bench.whatsapp.streamError(code)
      await its.until((now) => now.states.length > states && isOpen(now))
    }
    bench.whatsapp.drop()
    await its.until(closed)
    await its.until(isOpen)
    bench.whatsapp.streamError(440)
    await its.until(closed)
    await one.stop()
    bench.whatsapp.refuseLogins = 401
    const last = sink()
    await one.start(last, new AbortController().signal)
    await last.until(closed)
    expect([its, last].flatMap(({ errors }) => errors)).toHaveLength(2)
    expectNothingSaid()
  })

  it('pairing by a code: it is the pairing event and a line for the terminal, never a log', async () => {
    const one = provider({ printQr: true, pairingPhone: PHONE })
    const its = sink()
    await one.start(its, new AbortController().signal)
    await its.until(({ pairings }) => pairings.length > 0)
    const code = its.pairings[0]?.value ?? ''
    await bench.whatsapp.typeCode(code, PHONE)
    await its.until(isOpen)
    expect(JSON.stringify([its.logs, its.errors, its.states])).not.toContain(code)
    expect(
      printed.filter((line) => String(line).includes(`${code.slice(0, 4)}-${code.slice(4)}`)),
    ).toHaveLength(1)
    expectNothingSaid()
  })

  it('a damaged session: credentials cut inside a key, a person’s keys that are no JSON or another’s', async () => {
    await bench.paired()
    const one = provider()
    await connected(one)
    await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    while (bench.whatsapp.undelivered.length > 0) await once(bench.whatsapp, 'receipt')
    await one.stop()
    const person = (await readdir(join(bench.folder, 'tienda')))
      .find((name) => name.startsWith('session-'))
      ?.replace('.json', '')
    if (person === undefined) throw new Error('nobody wrote')
    const sound = await readFile(join(bench.folder, 'tienda', `${person}.json`), 'utf8')
    for (const change of [
      // The parser quotes what it stumbles over.
      (text: string) => text.replace('"currentRatchet":{"ephemeralKeyPair":{"pubKey":"', '$&x").'),
      (text: string) => text.replaceAll(/"(privKey|rootKey|key)":"(.{12})/g, '"$1":"$2AAAA'),
      () => '{}',
    ]) {
      await writeFile(join(bench.folder, 'tienda', `${person}.json`), sound)
      await damage(person, change)
      const next = await connected(provider())
      await bench.whatsapp.write(bench.ana, PHONE, 'otra')
      await provider().send({ chatId: bench.ana.jid }, { text: 'x' }).catch(keep)
      await next.until(
        ({ logs, messages }) => logs.length + messages.length > 0 || bench.whatsapp.retries.length > 0,
      )
    }
    for (const change of [
      (text: string) => text.replace('"private":{"type":"Buffer","data":"', '"private":'),
      (text: string) => text.slice(0, text.indexOf('"data":"') + 20),
      () => '42',
      () => '{}',
    ]) {
      const creds = await readFile(join(bench.folder, 'tienda', 'creds.json'), 'utf8')
      await damage('creds', change)
      const broken = provider()
      await broken.start(sink(), new AbortController().signal).catch(keep)
      await broken.stop()
      await writeFile(join(bench.folder, 'tienda', 'creds.json'), creds)
    }
    expectNothingSaid()
  })

  it('writes that fail, a message that the bot refuses, and a former leader that is refused', async () => {
    const shared = new MemoryStore()
    const store = new ReplicaStore(shared)
    const old = provider({ storage: new StoreStorage(store) })
    const its = sink(5)
    await bench.pair(old, its)
    for (let n = 1; n < 30; n++) store.failing.add(store.writes + n)
    await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await its.until(({ errors }) => errors.length > 0)
    store.failing.clear()
    await its.until(({ messages }) => messages.length > 0)
    const next = provider({ storage: new StoreStorage(shared) })
    const nexts = await connected(next, sink(6))
    await its.until(closed)
    nexts.accept = async () => {
      throw new Error('the journal cannot be reached')
    }
    await bench.whatsapp.write(bench.ana, PHONE, 'otra')
    await next.stop()
    expectNothingSaid()
  })
})
