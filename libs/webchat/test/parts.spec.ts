/** The pure parts. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '@botmesh/core'
import { WebchatProvider } from '@botmesh/webchat'
import { parseFile, parseInbound } from '../src/parse-inbound.js'
import { parseFrame } from '../src/protocol.js'
import { RateLimit } from '../src/rate-limit.js'
import { renderOutbound } from '../src/render-outbound.js'

describe('options', () => {
  it.each<[string, object, string]>([
    ['an unknown option, with the near name', { acount: 'x' }, 'did you mean "account"'],
    ['an account with a colon', { account: 'a:b' }, '"account"'],
    ['a path that ends in a slash', { path: '/chat/' }, '"path"'],
    ['a short secret', { secret: 'short' }, '"secret"'],
    ['an origin with a path', { allowedOrigins: ['https://a.example/x'] }, '"allowedOrigins"'],
    ['an impossible duration', { heartbeat: '5 parsecs' }, '"heartbeat"'],
    ['a rate of zero', { rateLimit: { burst: 0 } }, '"rateLimit.burst"'],
    ['an unknown rate', { rateLimit: { perHour: 3 } }, 'perHour'],
  ])('%s is a ConfigError that names it', (_name, options, text) => {
    const make = () => new WebchatProvider(options)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(text)
  })

  it('never shows the secret', () => {
    const make = () => new WebchatProvider({ secret: 'hunter2' })
    expect(make).toThrow(expect.objectContaining({ message: expect.not.stringContaining('hunter2') }))
    expect(make).toThrow(
      expect.objectContaining({
        details: { option: 'secret', accepted: expect.anything(), owner: 'WebchatProvider' },
      }),
    )
    expect(new WebchatProvider().id).toBe('webchat:default')
  })
})

describe('parts', () => {
  const sample = (name: string) =>
    readFileSync(new URL(`../src/sample-messages/${name}`, import.meta.url), 'utf8')

  it('B4: parses the sample frames', () => {
    const text = parseFrame(sample('text.json'))
    const button = parseFrame(sample('button.json'))
    const hello = parseFrame(sample('hello.json'))
    if (text?.t !== 'msg' || button?.t !== 'msg' || hello?.t !== 'hello') throw new Error('not parsed')
    expect(parseInbound(text, { id: 'v' }, 5)).toMatchObject({
      id: 'v.3f0c1d9a7be24f6d',
      type: 'text',
      timestamp: 5,
    })
    expect(parseInbound(button, { id: 'v', lang: hello.lang }, 5)).toMatchObject({
      type: 'button',
      buttonId: 'size-m',
      lang: 'es-MX',
    })
  })

  it('B4: parses the sample of a file', () => {
    const file = parseFrame(sample('file.json'))
    if (file?.t !== 'file') throw new Error('not parsed')
    const { media, type } = parseFile(file, 'v.c.d', { id: 'v' }, 5)
    expect(type).toBe('media')
    expect(media).toEqual({
      kind: 'document',
      mimeType: 'application/pdf',
      fileName: 'factura marzo.pdf',
      sizeBytes: 48213,
      id: 'v.c.d',
    })
  })

  it('B4: renders text, buttons, lists and media', () => {
    expect(renderOutbound('webchat:x', { text: 'hi', replyTo: 'm' }, 7, 'k')).toEqual({
      v: 1,
      from: 'bot',
      at: 7,
      id: 'k',
      text: 'hi',
      replyTo: 'm',
    })
    const list = { button: 'Menu', sections: [{ rows: [{ id: '1', title: 'One' }] }] }
    expect(renderOutbound('webchat:x', { text: 'pick', list }, 7)).toMatchObject({ list })
    const data = new Uint8Array([1, 2, 3])
    expect(
      renderOutbound('webchat:x', { media: { kind: 'image', data, mimeType: 'image/png', caption: 'c' } }, 7)
        .media,
    ).toEqual({ kind: 'image', url: 'data:image/png;base64,AQID', mimeType: 'image/png', caption: 'c' })
  })

  it('the rate refills evenly and says how long to wait', () => {
    const rate = new RateLimit(2, 60)
    expect([rate.take(0), rate.take(0), rate.take(0)]).toEqual([0, 0, 1000])
    expect([rate.take(500), rate.take(1000), rate.take(1500)]).toEqual([500, 0, 500])
  })
})
