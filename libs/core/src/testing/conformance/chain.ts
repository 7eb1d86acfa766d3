/** A chat's life as its turns write it: commits that chain on each other, repeated with one identity until answered. */
import type { FlowCheckpoint } from '../../contracts/checkpoint-store.js'
import { BotmeshError } from '../../contracts/errors.js'
import type { Message } from '../../contracts/message.js'
import type { CommitResult, StateStore } from '../../contracts/state-store.js'

export function testCheckpoint(revision: string, more: Partial<FlowCheckpoint> = {}): FlowCheckpoint {
  return { v: 1, name: 'order', kind: 'flow', visit: 1, state: { n: 1 }, fingerprint: 'f', ...more, revision }
}

export function testMessage(id: string): Message {
  return { id, chatId: 'c', from: 'c', type: 'text', body: `¿${id}? 👋`, isGroup: false, timestamp: 1 }
}

export interface Chain {
  /** Answered commits, in order: their revisions. */
  readonly revisions: string[]
  /** Errors on the way; each was retryable. */
  readonly errors: BotmeshError[]
}

/**
 * Makes `count` commits under one fence, each with a checkpoint on top of the last one, an inbound id and an outbox
 * entry; what fails in a retryable way is repeated as it is. @throws the first error that is not.
 */
export async function chainOfCommits(
  store: Pick<StateStore, 'openState' | 'commitState'>,
  key: string,
  fence: number,
  count: number,
  onCommitted: (n: number) => void | Promise<void> = () => undefined,
): Promise<Chain> {
  const chain: Chain = { revisions: [], errors: [] }
  const repeated = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof BotmeshError) || !error.retryable) throw error
        chain.errors.push(error)
      }
    }
  }
  const opened = await repeated(() => store.openState(key, fence))
  let expectedRevision = opened?.revision ?? null
  for (let n = 1; n <= count; n += 1) {
    const revision = `${fence}:${n}`
    const result: CommitResult = await repeated(() =>
      store.commitState(key, fence, `${fence}#${n}`, {
        inboundId: `m${n}`,
        checkpoint: testCheckpoint(revision),
        expectedRevision,
        outbox: [{ v: 1, key: `s${fence}:${n}`, hash: 'h', content: { text: 'x' }, status: 'intended' }],
      }),
    )
    if (result.outcome === 'refused') return chain
    chain.revisions.push(revision)
    expectedRevision = revision
    await onCommitted(n)
  }
  return chain
}
