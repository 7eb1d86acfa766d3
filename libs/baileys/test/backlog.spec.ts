/** Scenario 14: what counts as waiting behind a refused message, and what a refused message holds up. */
import { EventEmitter, once } from 'node:events'
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { BinaryNode, WASocket } from '@whiskeysockets/baileys'
import { systemClock } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { BaileysProvider } from '@botmesh/baileys'
import { Bench, forgetSeed, isOpen, PHONE } from '../../../test/support/whatsapp-session/bench.js'
import { keepArrivalOrder } from '../src/arrival-order.js'

describe('scenario 14: turns of messages', () => {
  const stanza = (id: string, from: string): BinaryNode => ({ tag: 'message', attrs: { id, from } })
  const ended = () => new Promise((resolve) => setImmediate(resolve))

  it('end also where Baileys fails before it decrypts; ignored chats take none and count for nothing', async () => {
    const ws = Object.assign(new EventEmitter(), { isOpen: true })
    const log: string[] = []
    let fail: (error: Error) => void = () => {}
    ws.on('CB:message', ({ attrs }: BinaryNode): unknown => {
      log.push(`begun ${attrs['id']}`)
      return attrs['id'] === 'a' ? new Promise((_, reject) => (fail = reject)) : undefined
    })
    keepArrivalOrder(ws as never, {
      isIgnored: ({ attrs }) => attrs['from'] === 'status@broadcast',
      arrived: ({ attrs }) => log.push(`arrived ${attrs['id']}`),
      done: ({ attrs }) => log.push(`done ${attrs['id']}`),
    })
    ws.emit('CB:message', stanza('a', 'ana'))
    ws.emit('CB:message', stanza('b', 'ana'))
    await ended()
    ws.emit('CB:message', stanza('s', 'status@broadcast'))
    expect(log).toEqual(['arrived a', 'arrived b', 'begun a', 'begun s'])
    fail(new Error('the hidden id could not be stored'))
    await ended()
    expect(log.slice(4)).toEqual(['done a', 'begun b', 'done b'])
    ws.isOpen = false
    ws.emit('CB:message', stanza('c', 'ana'))
    await ended()
    expect(log.slice(7)).toEqual(['arrived c', 'done c'])
  })
})

describe('scenario 14: against WhatsApp', () => {
  let bench: Bench
  beforeEach(async () => {
    bench = await Bench.start()
  })
  afterEach(() => bench.stop())
  afterAll(forgetSeed)
  const GROUP = '120363040000000001@g.us'

  it('messages of ignored chats, before and behind a refused one, do not fill the backlog', async () => {
    await bench.paired()
    let refused: () => void = () => {}
    const refusal = new Promise<void>((resolve) => (refused = resolve))
    let retry: () => void = () => {}
    const sink = new RecordingSink({
      clock: {
        ...systemClock,
        setTimeout: (fn, ms, options) => {
          if (options?.background !== true) return systemClock.setTimeout(fn, ms, options)
          retry = fn
          refused()
          return { cancel: () => {} }
        },
      },
    })
    let refusals = 1
    sink.accept = async () => {
      if (refusals-- > 0) throw new Error('the journal cannot be reached')
    }
    const provider = bench.provider({
      backlog: { messages: 2 },
      socketOptions: {
        shouldSyncHistoryMessage: () => false,
        shouldIgnoreJid: (jid: string) => jid === GROUP,
      },
    })
    await provider.start(sink, new AbortController().signal)
    await sink.until(isOpen)
    const ignored = async () => {
      for (let n = 0; n < 4; n++) {
        const acknowledged = once(bench.whatsapp, 'receipt')
        const id = await bench.whatsapp.write(bench.ana, PHONE, 'grupo', { from: GROUP })
        expect(await acknowledged).toEqual([id])
      }
    }
    await ignored()
    await bench.whatsapp.write(bench.ana, PHONE, 'hola')
    await refusal
    await ignored()
    const taken = once(bench.whatsapp, 'receipt')
    retry()
    await taken
    expect(sink.bodies).toEqual(['hola'])
    expect(sink.states.filter(({ status }) => status === 'closed')).toEqual([])
    expect(sink.errors).toEqual([])
  })

  it('what stays refused of one chat does not wait for what another chat’s is refused: the connection is made anew within seconds', async () => {
    await bench.paired()
    const sockets: WASocket[] = []
    const load = async () => {
      const library = await import('@whiskeysockets/baileys')
      const makeWASocket: typeof library.makeWASocket = (config) => {
        const socket = library.makeWASocket(config)
        sockets.push(socket)
        return socket
      }
      return { ...library, makeWASocket }
    }
    let anasRefusals = 8
    let benRefused: (() => void) | undefined
    const refusal = new Promise<void>((resolve) => (benRefused = resolve))
    const sink = new RecordingSink({
      clock: {
        ...systemClock,
        setTimeout: (fn, ms, options) => {
          // The first pause is of Ben's message, and lasts until the stop.
          if (options?.background === true && benRefused !== undefined) {
            benRefused()
            benRefused = undefined
            return { cancel: () => {} }
          }
          return systemClock.setTimeout(fn, ms >= 2000 && options?.background !== true ? ms : 5, options)
        },
      },
    })
    sink.accept = async ({ body }) => {
      if (body === 'ben' || anasRefusals-- > 0) throw new Error('the journal cannot be reached')
    }
    const provider = new BaileysProvider(
      {
        session: 'tienda',
        folder: bench.folder,
        printQr: false,
        waWebSocketUrl: bench.whatsapp.url,
        socketOptions: { shouldSyncHistoryMessage: () => false },
      },
      load,
    )
    await provider.start(sink, new AbortController().signal)
    await sink.until(isOpen)
    // Told of without having been sealed, so that it does not hold up the others.
    sockets[0]?.ev.emit('messages.upsert', {
      type: 'notify',
      messages: [
        {
          key: { id: 'BEN', remoteJid: '5215550003333@s.whatsapp.net', fromMe: false },
          messageTimestamp: Math.floor(Date.now() / 1000),
          message: { conversation: 'ben' },
        },
      ],
    })
    await refusal
    await bench.whatsapp.write(bench.ana, PHONE, 'ana')
    await sink.until(({ messages }) => messages.length === 1)
    expect(sink.bodies).toEqual(['ana'])
    expect(sink.states.filter(({ status }) => status === 'closed')).toEqual([
      { status: 'closed', reason: 'message-not-accepted' },
    ])
    expect(sockets).toHaveLength(2)
    await provider.stop()
  })
})
