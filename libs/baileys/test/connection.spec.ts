/** Close codes, reconnection and life cycle, with the real client against the double. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigError, ProviderError, systemClock, type Clock } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { BaileysProvider } from '@botmesh/baileys'
import { Bench, forgetSeed, isOpen, PHONE, statuses } from '../../../test/support/whatsapp-session/bench.js'

let bench: Bench
const unhandled: unknown[] = []
const onUnhandled = (error: unknown) => unhandled.push(error)
beforeEach(async () => {
  process.on('unhandledRejection', onUnhandled)
  bench = await Bench.start()
})
afterEach(async () => {
  await bench.stop()
  process.off('unhandledRejection', onUnhandled)
  const errors = unhandled.splice(0)
  if (errors.length > 0) throw new AggregateError(errors, 'unhandled rejections')
})

afterAll(forgetSeed)

/** Reconnect pauses last no time, and say how long they would have been. */
function hastyClock(pauses: number[]): Clock {
  return {
    ...systemClock,
    setTimeout: (fn, ms, options) => {
      // Pauses between sockets are at least half a second; nothing else is waited for here.
      pauses.push(ms)
      return systemClock.setTimeout(fn, ms >= 2000 ? ms : 5, options)
    },
  }
}

describe('scenario 19: how a connection ends', () => {
  it.each([428, 408, 503])('%s: closed, then connected again after a pause', async (code) => {
    await bench.paired()
    const pauses: number[] = []
    const sink = new RecordingSink({ clock: hastyClock(pauses) })
    await bench.provider().start(sink, new AbortController().signal)
    await sink.until(isOpen)
    bench.whatsapp.streamError(code)
    await sink.until(() => sink.states.length >= 5)
    expect(sink.states.map((one) => one.status)).toEqual([
      'connecting',
      'open',
      'closed',
      'connecting',
      'open',
    ])
    expect(sink.states[2]).not.toHaveProperty('final')
    expect(pauses[0]).toBeGreaterThanOrEqual(500)
    expect(sink.errors).toEqual([])
  })

  it('515 reconnects at once', async () => {
    await bench.paired()
    const pauses: number[] = []
    const sink = new RecordingSink({ clock: hastyClock(pauses) })
    await bench.provider().start(sink, new AbortController().signal)
    await sink.until(isOpen)
    bench.whatsapp.streamError(515)
    await sink.until(() => sink.states.length >= 5)
    expect(statuses(sink)).toEqual(['connecting', 'open', 'closed:restart-required', 'connecting', 'open'])
    expect(pauses).toEqual([])
  })

  it('a connection that breaks without a word is made again', async () => {
    await bench.paired()
    const sink = new RecordingSink({ clock: hastyClock([]) })
    await bench.provider().start(sink, new AbortController().signal)
    await sink.until(isOpen)
    bench.whatsapp.drop()
    await sink.until(() => sink.states.length >= 5)
    expect(statuses(sink)).toEqual(['connecting', 'open', 'closed:connection-closed', 'connecting', 'open'])
  })

  it('440: the replica that was replaced is closed for good and never throws the other one out', async () => {
    await bench.paired()
    const first = new RecordingSink({ clock: hastyClock([]) })
    const second = new RecordingSink({ clock: hastyClock([]) })
    const [one, two] = [bench.provider(), bench.provider()]
    await one.start(first, new AbortController().signal)
    await first.until(isOpen)
    await two.start(second, new AbortController().signal)
    await first.until(() => first.states.at(-1)?.status === 'closed')
    await second.until(isOpen)
    expect(one.state).toEqual({ status: 'closed', reason: 'replaced', final: true })
    expect(first.errors).toEqual([expect.any(ProviderError)])
    const accepted = bench.whatsapp.accepted
    // The other one goes on; nothing of the first comes back meanwhile.
    await bench.whatsapp.write(bench.ana, PHONE, 'still there?')
    await second.until(() => second.messages.length === 1)
    expect(bench.whatsapp.accepted).toBe(accepted)
    expect(two.state.status).toBe('open')
    // P3: after it resigned, it may stand and connect again.
    await one.stop()
    await one.start(first, new AbortController().signal)
    await first.until(isOpen)
    expect(two.state).toEqual({ status: 'closed', reason: 'replaced', final: true })
  })

  it('401: final and reported; the session is put aside, so that the next start shows a QR code', async () => {
    await bench.paired()
    const provider = bench.provider()
    const sink = new RecordingSink({ clock: hastyClock([]) })
    bench.whatsapp.refuseLogins = 401
    await provider.start(sink, new AbortController().signal)
    await sink.until(() => sink.states.at(-1)?.status === 'closed')
    expect(provider.state).toEqual({ status: 'closed', reason: 'logged-out', final: true })
    expect(sink.errors[0]).toMatchObject({ code: 'PROVIDER', details: { reason: 'logged-out', final: true } })
    await provider.stop()
    expect(existsSync(join(bench.folder, 'tienda.logged-out', 'creds.json'))).toBe(true)
    await provider.start(sink, new AbortController().signal)
    await sink.until(() => sink.pairings.length > 0)
  })

  it('401 with afterLogout keep: the session stays', async () => {
    await bench.paired()
    const sink = new RecordingSink()
    const provider = bench.provider({ afterLogout: 'keep' })
    bench.whatsapp.refuseLogins = 401
    await provider.start(sink, new AbortController().signal)
    await sink.until(() => sink.states.at(-1)?.status === 'closed')
    await provider.stop()
    expect(existsSync(join(bench.folder, 'tienda', 'creds.json'))).toBe(true)
  })
})

describe('scenario 20: no socket after the end', () => {
  it('a reconnect timer that fires after the leadership was lost opens none', async () => {
    await bench.paired()
    const due: (() => void)[] = []
    // Timers of this clock cannot be cancelled: they fire late, as a busy loop makes them.
    const stubborn: Clock = {
      ...systemClock,
      setTimeout: (fn) => {
        due.push(fn)
        return { cancel: () => {} }
      },
    }
    const sink = new RecordingSink({ clock: stubborn })
    const leadership = new AbortController()
    const provider = bench.provider()
    await provider.start(sink, leadership.signal)
    await sink.until(isOpen)
    bench.whatsapp.streamError(428)
    await sink.until(() => sink.states.at(-1)?.status === 'closed' && due.length > 0)
    const accepted = bench.whatsapp.accepted
    leadership.abort()
    for (const fire of due) fire()
    await provider.stop()
    for (const fire of due) fire()
    await bench.gone()
    expect(bench.whatsapp.accepted).toBe(accepted)
    expect(provider.state).toEqual({ status: 'closed', reason: 'stopped' })
  })

  it('the socket is closed at once when the signal aborts', async () => {
    const { provider, abort } = await bench.connected()
    abort.abort()
    await bench.gone()
    await provider.stop()
    expect(provider.state.status).toBe('closed')
    await expect(provider.send({ chatId: bench.ana.jid }, { text: 'late' })).rejects.toMatchObject({
      outcome: 'retryable',
    })
  })

  it('stop during start ends in closed, without a socket', async () => {
    const provider = bench.provider()
    const sink = bench.sink()
    const starting = provider.start(sink, new AbortController().signal)
    await provider.stop()
    await starting
    expect(provider.state.status).toBe('closed')
    expect(bench.whatsapp.accepted).toBe(0)
  })

  it('stop during the handshake closes that socket', async () => {
    await bench.paired()
    const provider = bench.provider()
    const sink = bench.sink()
    const accepted = once(bench.whatsapp, 'socket')
    await provider.start(sink, new AbortController().signal)
    await accepted
    await provider.stop()
    await bench.gone()
    expect(statuses(sink).at(-1)).toBe('closed:stopped')
  })

  it('a start under an aborted signal, and one overtaken by a stop, open none', async () => {
    const provider = bench.provider()
    const sink = bench.sink()
    await provider.start(sink, AbortSignal.abort())
    const first = provider.start(sink, new AbortController().signal)
    const stopping = provider.stop()
    const second = provider.start(sink, new AbortController().signal)
    const again = provider.stop()
    await Promise.all([first, stopping, second, again])
    expect(provider.state.status).toBe('closed')
    expect(bench.whatsapp.accepted).toBe(0)
  })
})

describe('life cycle', () => {
  it('scenario 21: start twice is one socket; stop twice is one; start, stop, start works without a new QR code', async () => {
    await bench.paired()
    const accepted = bench.whatsapp.accepted
    const provider = bench.provider()
    const sink = bench.sink()
    const { signal } = new AbortController()
    await Promise.all([provider.start(sink, signal), provider.start(sink, signal)])
    await sink.until(isOpen)
    await provider.start(sink, signal)
    expect(bench.whatsapp.accepted).toBe(accepted + 1)
    await Promise.all([provider.stop(), provider.stop()])
    await bench.gone()
    await provider.start(sink, signal)
    await sink.until(isOpen)
    expect(sink.pairings).toEqual([])
    expect(bench.whatsapp.mostLoggedIn).toBe(1)
  })

  it('P1: the standby takes over with the same session, and gets what was written in between', async () => {
    const leader = await bench.connected()
    const standby = bench.provider()
    const sink = bench.sink()
    await leader.provider.stop()
    await bench.gone()
    await bench.whatsapp.write(bench.ana, PHONE, 'anybody?')
    await standby.start(sink, new AbortController().signal)
    await sink.until(() => sink.messages.length === 1)
    expect(sink.bodies).toEqual(['anybody?'])
    expect(sink.pairings).toEqual([])
    expect(bench.whatsapp.mostLoggedIn).toBe(1)
  })

  it('messages older than offlineMaxAge are ignored', async () => {
    await bench.paired()
    await bench.whatsapp.write(bench.ana, PHONE, 'yesterday', {
      t: String(Math.floor(Date.now() / 1000) - 7200),
    })
    await bench.whatsapp.write(bench.ana, PHONE, 'today')
    const sink = bench.sink()
    await bench.provider({ offlineMaxAge: '1h' }).start(sink, new AbortController().signal)
    await sink.until(() => sink.messages.length > 0)
    expect(sink.bodies).toEqual(['today'])
  })

  it('without Baileys: a ConfigError that says what to install', async () => {
    const provider = new BaileysProvider({ session: 'x' }, async () => {
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    })
    const sink = bench.sink()
    const error = await provider.start(sink, new AbortController().signal).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toContain('npm install @whiskeysockets/baileys')
    expect(provider.state).toEqual({ status: 'closed', reason: 'start-failed', final: true })
    await provider.stop()
  })
})

describe('sends', () => {
  it('a refusal of WhatsApp is final, with its code', async () => {
    const { provider } = await bench.connected()
    bench.whatsapp.refuseSends = '463'
    const error = provider.send({ chatId: bench.ana.jid }, { text: 'hello stranger' })
    await expect(error).rejects.toMatchObject({ outcome: 'final', details: { platformCode: '463' } })
  })

  it('scenario 16: no acknowledgement in time, or a lost connection: uncertain', async () => {
    const { provider } = await bench.connected(bench.provider({ ackTimeout: '2s' }))
    bench.whatsapp.acknowledge = false
    const to = { chatId: bench.ana.jid }
    await expect(provider.send(to, { text: 'one' })).rejects.toMatchObject({ outcome: 'uncertain' })
    bench.whatsapp.acknowledge = true
    const { id } = await provider.send(to, { text: 'two' }, { idempotencyKey: 'turn-7/step/1' })
    const again = await provider.send(to, { text: 'two' }, { idempotencyKey: 'turn-7/step/1' })
    expect(again.id).toBe(id)
    expect(bench.whatsapp.received.map((one) => one.message.extendedTextMessage?.text)).toEqual([
      'one',
      'two',
      'two',
    ])
  })

  it('under an aborted signal nothing is sent', async () => {
    const { provider } = await bench.connected()
    const lost = AbortSignal.abort(new Error('the turn was lost'))
    await expect(provider.send({ chatId: bench.ana.jid }, { text: 'x' }, { signal: lost })).rejects.toThrow(
      'the turn was lost',
    )
    expect(bench.whatsapp.received).toEqual([])
  })
})
