/** Parts of the message path by themselves: recent ids, lanes, the send gate, repeated commits. */
import { describe, expect, it } from '@jest/globals'
import { MemoryStore, SendError, StoreError, type CommitResult } from '../../src/index.js'
import { FakeProvider, ManualClock, RecordingSink, SeededRandom } from '../../src/testing/index.js'
import { SeparateAccess } from '../../src/runtime/chat-access.js'
import { ChatLanes } from '../../src/runtime/chat-lanes.js'
import { RecentIds } from '../../src/runtime/recent-ids.js'
import { SendGate } from '../../src/runtime/send-gate.js'

describe('B1: recent ids', () => {
  it('remembers at least `limit` ids and forgets older ones', () => {
    const ids = new RecentIds(3)
    for (let i = 0; i < 10; i++) ids.add(String(i), true)
    for (const kept of ['7', '8', '9']) expect(ids.get(kept)).toBe(true)
    expect(ids.get('0')).toBeUndefined()
    ids.forget('9')
    expect(ids.get('9')).toBeUndefined()
  })
})

describe('T1, T2: lanes', () => {
  it('jobs of one key in order, keys side by side, and nothing kept of an empty lane', async () => {
    const lanes = new ChatLanes()
    const log: string[] = []
    const job = (name: string, ticks: number) => async () => {
      for (let i = 0; i < ticks; i++) await Promise.resolve()
      log.push(name)
    }
    lanes.run('a', job('a1', 5))
    lanes.run('a', job('a2', 0))
    lanes.run('b', job('b1', 0))
    expect(lanes.size).toBe(2)
    await new Promise((resolve) => setImmediate(resolve))
    expect(log).toEqual(['b1', 'a1', 'a2'])
    expect(lanes.size).toBe(0)
  })
})

describe('scenario 16: the send gate', () => {
  async function outgoing(resend = false) {
    const clock = new ManualClock()
    const provider = new FakeProvider({ capabilities: resend ? { uncertainSends: 'resend' } : {} })
    await provider.start(new RecordingSink({ clock }), new AbortController().signal)
    const gate = new SendGate({
      provider,
      clock,
      random: new SeededRandom(1),
      assertMaySend: () => undefined,
    })
    return { clock, provider, gate }
  }
  const busy = (retryAfterMs: number, scope: 'chat' | 'account') =>
    new SendError('busy', { provider: 'fake:test', outcome: 'retryable', retryAfterMs, scope })

  it('waits as long as the platform asks, for that chat only', async () => {
    const { clock, provider, gate: out } = await outgoing()
    provider.failNextSends(busy(3000, 'chat'))
    const first = out.deliver({ chatId: '1' }, { text: 'one' })
    await clock.settle()
    const second = out.deliver({ chatId: '1' }, { text: 'two' })
    await out.deliver({ chatId: '2' }, { text: 'other' })
    await clock.advance(2900)
    expect(provider.texts).toEqual(['other'])
    await clock.advance(200)
    await Promise.all([first, second])
    expect(provider.texts.slice(1)).toEqual(['one', 'two'])
  })

  it('waits for the whole account where that is what was said; a long pause is told instead', async () => {
    const { clock, provider, gate: out } = await outgoing()
    provider.failNextSends(busy(60_000, 'account'))
    await expect(out.deliver({ chatId: '1' }, { text: 'one' })).rejects.toMatchObject({
      outcome: 'retryable',
    })
    await expect(out.deliver({ chatId: '2' }, { text: 'two' })).rejects.toMatchObject({
      details: { scope: 'account', retryAfterMs: 60_000 },
    })
    await clock.advance(60_001)
    await out.deliver({ chatId: '2' }, { text: 'two' })
    expect(provider.texts).toEqual(['two'])
  })

  it('gives up after three attempts; final and uncertain ones are not repeated', async () => {
    const { clock, provider, gate: out } = await outgoing()
    provider.failNextSends('retryable', 'retryable', 'retryable')
    const send = out.deliver({ chatId: '1' }, { text: 'x' }).catch((error: unknown) => error)
    await clock.advance(5000)
    expect(await send).toMatchObject({ outcome: 'retryable' })
    provider.failNextSends('final')
    await expect(out.deliver({ chatId: '1' }, { text: 'x' })).rejects.toMatchObject({ outcome: 'final' })
    provider.failNextSends('uncertain')
    await expect(out.deliver({ chatId: '1' }, { text: 'x' })).rejects.toMatchObject({ outcome: 'uncertain' })
  })

  it("an uncertain send is made again where the transport says 'resend'", async () => {
    const { clock, provider, gate: out } = await outgoing(true)
    provider.failNextSends('uncertain')
    const send = out.deliver({ chatId: '1' }, { text: 'x' })
    await clock.advance(2000)
    await send
    expect(provider.texts).toEqual(['x', 'x'])
  })

  it('L2: the guard is asked right before every attempt, and its signal cuts the wait', async () => {
    const { clock, provider, gate: out } = await outgoing()
    provider.failNextSends('retryable')
    const lost = new AbortController()
    const send = out.deliver({ chatId: '1' }, { text: 'x' }, { signal: lost.signal })
    await clock.settle()
    lost.abort(new Error('lost'))
    await expect(send).rejects.toThrow('lost')
    expect(provider.texts).toEqual([])
    expect(clock.timers).toBe(0)
  })
})

describe('I12: a commit whose reply was lost', () => {
  it('is repeated with the same identity until it is answered', async () => {
    const clock = new ManualClock()
    const store = new MemoryStore({ clock })
    const ids: string[] = []
    let lost = 2
    const flaky = Object.create(store) as MemoryStore
    flaky.commitState = async (key, fence, commitId, effects): Promise<CommitResult> => {
      ids.push(commitId)
      const result = await store.commitState(key, fence, commitId, effects)
      if (lost-- > 0) {
        throw new StoreError('lost', { store: 'memory', operation: 'commit' }, { retryable: true })
      }
      return result
    }
    const turn = {
      key: 'k/1',
      fence: 7,
      assertHeld: () => undefined,
      release: () => Promise.resolve(),
    }
    const access = new SeparateAccess(turn, flaky, clock, 100)
    await access.open({})
    const landed: CommitResult[] = []
    const done = access.finish({ inboundId: 'm' }, (result) => landed.push(result))
    await clock.advance(1000)
    await done
    expect(landed).toMatchObject([{ outcome: 'committed' }])
    expect(ids).toHaveLength(3)
    expect(new Set(ids).size).toBe(1)
    expect(await access.isCommitted('m')).toBe(true)
  })
})
