/**
 * Which span of work a piece of user code belongs to. JavaScript cannot stop a function, so what was suspended or
 * lost its turn goes on running; it finds its own scope here, revoked, and nothing that it does through the bot
 * has an effect any more (T4, K4).
 *
 * One storage for all bots of the process: code of one bot that uses another one still acts in its own scope.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ActScope } from '../conversation/port.js'

const storage = new AsyncLocalStorage<ActScope>()

/** Runs `fn`, and everything that it starts, in `act`. */
export function runInScope<T>(act: ActScope, fn: () => T): T {
  return storage.run(act, fn)
}

/** The scope of the calling code; undefined outside of any handler, step and conversation. */
export function currentScope(): ActScope | undefined {
  return storage.getStore()
}

/** Runs `fn` outside of any scope: for the runtime's own work that user code happened to start. */
export function runDetached<T>(fn: () => T): T {
  return storage.exit(fn)
}

/** For what code of that scope tries: asked before each attempt. */
export function guardOf(act: ActScope | undefined): { assertLive(): void } {
  return {
    assertLive: () => {
      const revoked = act?.revoked ?? null
      if (revoked !== null) throw revoked
    },
  }
}
