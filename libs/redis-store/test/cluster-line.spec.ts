/** A line into a cluster whose nodes do not agree (S3): where calls go, and how often. */
import { describe, expect, it } from '@jest/globals'
import { ManualClock } from '@botmesh/core/testing'
import { ClusterLine, type Connection, type ServerConnections } from '../src/cluster-line.js'

const SLOT = 7

/** Two nodes; what they answer is the test's. */
function twoNodes(answer: (asked: number) => unknown): {
  line: ClusterLine
  clock: ManualClock
  /** When which node was asked. */
  asked: { port: number; at: number }[]
  moveTo: (port: number) => void
} {
  const clock = new ManualClock()
  const asked: { port: number; at: number }[] = []
  const connections = [1, 2].map((port) => {
    const call = (): Promise<unknown> => {
      asked.push({ port, at: clock.monotonic() })
      const reply = answer(port)
      return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply)
    }
    const link = { ready: true, place: `node:${port}`, call, open: () => Promise.resolve() }
    return { link, address: { host: 'node', port } } as unknown as Connection
  })
  let owner = 1
  const of = (port: number): Connection => connections[port - 1] as Connection
  const nothing = (): void => undefined
  const lines = {
    ...{ name: 'the cluster', clock, add: nothing, remove: nothing, worry: nothing },
    ...{ claim: nothing, unclaim: nothing },
    map: {
      ownerOf: () => of(owner).address,
      reach: (host: string, port: number) => ({ host, port }),
      moved: (_slot: number, { port }: { port: number }) => void (owner = port),
    },
    connectionFor: () => of(owner),
    connectionTo: () => of(owner),
  } as unknown as ServerConnections
  const line = new ClusterLine(lines, { role: 'turns', slot: SLOT })
  const moveTo = (port: number): void => {
    owner = port
    line.follow()
  }
  return { line, clock, asked, moveTo }
}

const moved = (port: number): Error => new Error(`MOVED ${SLOT} node:${port}`)

describe('S3: MOVED', () => {
  it('is followed at once', async () => {
    const { line, clock, asked } = twoNodes((port) => (port === 1 ? moved(2) : 'done'))
    await line.open(1000)
    expect(await line.call('ping', [], 1000)).toBe('done')
    expect(asked).toEqual([
      { port: 1, at: 0 },
      { port: 2, at: 0 },
    ])
    expect(clock.timers).toBe(0)
  })

  it('of two nodes that name each other: asked ever more seldom, until the call has had its time', async () => {
    const { line, clock, asked } = twoNodes((port) => moved(3 - port))
    await line.open(1000)
    const failed = line.call('ping', [], 3000).catch((error: unknown) => error)
    await clock.advance(3000)
    expect(String(await failed)).toMatch(/MOVED/)
    const pauses = asked.slice(1).map(({ at }, n) => at - (asked[n]?.at ?? 0))
    expect(pauses.slice(0, 7)).toEqual([0, 25, 50, 100, 200, 400, 400])
    expect(asked.length).toBeLessThanOrEqual(13)
    expect(clock.timers).toBe(0)
  })

  it('of two nodes that name each other: once the others say who serves the slot, the call goes there', async () => {
    let agreed = false
    const { line, clock, asked, moveTo } = twoNodes((port) =>
      agreed && port === 1 ? 'done' : moved(3 - port),
    )
    await line.open(1000)
    const called = line.call('ping', [], 10_000)
    await clock.advance(100)
    expect(asked.at(-1)).toEqual({ port: 2, at: 75 })
    agreed = true
    moveTo(1)
    await clock.advance(75)
    expect(await called).toBe('done')
    expect(asked.at(-1)).toEqual({ port: 1, at: 175 })
  })
})
