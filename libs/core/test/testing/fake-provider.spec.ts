/** The fake transport behaves like a transport, and is convenient for a test. */
import { describe, expect, it } from '@jest/globals'
import {
  ConfigError,
  SendError,
  silentLogger,
  systemClock,
  systemRandom,
  type ProviderSink,
} from '@botmesh/core'
import { FakePlatform, FakeProvider, providerSuite } from '@botmesh/core/testing'

providerSuite(
  { describe, it, expect },
  {
    name: 'fake',
    guarantees: { connects: true, refusesSends: true },
    bed: async () => {
      const provider = new FakeProvider()
      return {
        provider,
        connections: () => (provider.state.status === 'open' ? 1 : 0),
        userWrites: async (body) => void (await provider.receive(body)),
        received: () => provider.texts,
        refuseNextSend: () => provider.failNextSends('final'),
        close: async () => undefined,
      }
    },
  },
)

function sink(more: Partial<ProviderSink> = {}): ProviderSink {
  return {
    message: async () => undefined,
    state: () => undefined,
    pairing: () => undefined,
    error: () => undefined,
    logger: silentLogger,
    clock: systemClock,
    random: systemRandom,
    ...more,
  }
}

describe('FakeProvider', () => {
  const never = new AbortController().signal

  it('fills in what a test leaves out, and refuses to receive before it is started', async () => {
    const provider = new FakeProvider()
    await expect(provider.receive('hola')).rejects.toBeInstanceOf(ConfigError)
    await provider.start(sink(), never)
    expect(await provider.receive('hola')).toMatchObject({
      body: 'hola',
      chatId: '100',
      from: '100',
      type: 'text',
    })
    const inGroup = await provider.receive({ chatId: 'g', participant: 'ana', body: 'yo' })
    expect(inGroup).toMatchObject({ isGroup: true, from: 'ana', participant: 'ana' })
    expect(inGroup.id).not.toBe((await provider.receive('otra')).id)
  })

  it('rejects what the bot does not accept', async () => {
    const provider = new FakeProvider()
    await provider.start(sink({ message: async () => Promise.reject(new Error('not now')) }), never)
    await expect(provider.receive('hola')).rejects.toThrow('not now')
  })

  it('gives sends one by one, also when they come later', async () => {
    const provider = new FakeProvider()
    await provider.start(sink(), never)
    const [first, second] = [provider.nextSent(), provider.nextSent()]
    await provider.send({ chatId: '1' }, { text: 'uno' })
    await provider.send({ chatId: '2' }, { text: 'dos' })
    expect((await first).text).toBe('uno')
    expect((await second).to).toEqual({ chatId: '2' })
    await expect(provider.nextSent({ timeoutMs: 5 })).rejects.toThrow('"uno", "dos"')
  })

  it('scenario 16: an uncertain failure went out, a final one did not', async () => {
    const provider = new FakeProvider()
    await provider.start(sink(), never)
    provider.failNextSends('uncertain', 'final', new Error('odd'))
    await expect(provider.send({ chatId: '1' }, { text: 'a' })).rejects.toBeInstanceOf(SendError)
    await expect(provider.send({ chatId: '1' }, { text: 'b' })).rejects.toMatchObject({ outcome: 'final' })
    await expect(provider.send({ chatId: '1' }, { text: 'c' })).rejects.toThrow('odd')
    await provider.send({ chatId: '1' }, { text: 'd' })
    expect(provider.texts).toEqual(['a', 'd'])
  })

  it('replicas that share a platform see the order of all sends', async () => {
    const platform = new FakePlatform()
    const [a, b] = [new FakeProvider({ platform }), new FakeProvider({ platform })]
    await a.start(sink(), never)
    await b.start(sink(), never)
    await a.send({ chatId: '1' }, { text: 'a' })
    await b.send({ chatId: '1' }, { text: 'b' })
    expect(platform.sent.map((send) => send.text)).toEqual(['a', 'b'])
    expect(b.texts).toEqual(['b'])
  })

  it('of replicas that share a platform no two get messages of one id', async () => {
    const platform = new FakePlatform()
    const [a, b] = [new FakeProvider({ platform }), new FakeProvider({ platform })]
    expect([a, b, a].map((one) => one.message('x').id)).toEqual(['in-1', 'in-2', 'in-3'])
  })
})
