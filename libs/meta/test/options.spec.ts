/** Bad options end at construction with an error that names them; the life cycle of a webhook transport. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '@botmesh/core'
import { RecordingSink } from '@botmesh/core/testing'
import { MetaProvider, type MetaOptions } from '@botmesh/meta'

const GOOD = { phoneNumberId: '1065', accessToken: 'EAAtoken', appSecret: 'secret', verifyToken: 'verify' }

describe('options of MetaProvider', () => {
  it.each<[object, string, RegExp]>([
    [{ ...GOOD, phoneNumberId: undefined }, 'phoneNumberId', /undefined/],
    [{ ...GOOD, accessToken: undefined }, 'accessToken', /environment variable/],
    [{ ...GOOD, appSecret: '' }, 'appSecret', /accepted: a non-empty string/],
    [{ ...GOOD, verifyToken: 7 }, 'verifyToken', /non-empty/],
    [{ ...GOOD, graphUrl: 'graph.facebook.com' }, 'graphUrl', /http\(s\) URL/],
    [{ ...GOOD, apiVersion: '23' }, 'apiVersion', /'v23\.0'/],
    [{ ...GOOD, maxBodyBytes: 10 }, 'maxBodyBytes', /at least 1024/],
    [{ ...GOOD, sendTimeoutMs: '1 eternity' }, 'sendTimeoutMs', /milliseconds/],
    [{ ...GOOD, acessToken: 'x' }, 'acessToken', /did you mean "accessToken"/],
  ])('%j', (options, option, message) => {
    const make = () => new MetaProvider(options as MetaOptions)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(message)
    expect(make).toThrow(expect.objectContaining({ details: expect.objectContaining({ option }) }))
  })

  it('P2: is not exclusive; its id names the account', () => {
    expect(new MetaProvider(GOOD).id).toBe('meta:1065')
    const provider = new MetaProvider({ ...GOOD, account: 'shop' })
    expect(provider.id).toBe('meta:shop')
    expect(provider.capabilities.exclusiveSession).toBeUndefined()
  })
})

describe('life cycle', () => {
  it('scenario 21: starts and stops twice, and starts again', async () => {
    const provider = new MetaProvider(GOOD)
    const sink = new RecordingSink()
    const other = new RecordingSink()
    const { signal } = new AbortController()
    expect(provider.state.status).toBe('closed')
    await Promise.all([provider.start(sink, signal), provider.start(other, signal)])
    expect(sink.states).toEqual([{ status: 'connecting' }, { status: 'open' }])
    expect(other.states).toEqual([])
    await Promise.all([provider.stop(), provider.stop()])
    expect(provider.state).toEqual({ status: 'closed', reason: 'stopped' })
    await provider.start(sink, signal)
    expect(sink.states.map((state) => state.status)).toEqual([
      'connecting',
      'open',
      'closed',
      'connecting',
      'open',
    ])
    await provider.stop()
  })

  it('scenario 20: does not open after the leadership was lost', async () => {
    const provider = new MetaProvider(GOOD)
    const sink = new RecordingSink()
    await provider.start(sink, AbortSignal.abort())
    expect(sink.states.map((state) => state.status)).toEqual(['connecting', 'closed'])
  })
})
