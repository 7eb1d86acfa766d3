/** What stands for a turn where there is no coordination: the chat's lane makes it exclusive. */
import type { TurnLike } from './chat-access.js'

/** Its fence only orders writes in a store that fences. */
export interface LocalTurn extends TurnLike {
  readonly local: true
}

export function localTurn(key: string, fence: number): LocalTurn {
  return { local: true, key, fence, assertHeld: () => undefined, release: () => Promise.resolve() }
}
