/** `@nestjs/event-emitter` is an optional peer: loaded if it is there, no matter if it is not. */
import type { FactoryProvider } from '@nestjs/common'

/** The part of EventEmitter2 that is used; its own types may not be installed. */
export interface EventTarget2 {
  emit(event: string, payload: unknown): unknown
  listenerCount(event: string): number
}

export const EVENT_EMITTER = Symbol('botmesh:event-emitter')

/** Resolves to the class EventEmitter2, which is its own token, or null. */
export const softEventEmitter: FactoryProvider<Promise<unknown>> = {
  provide: EVENT_EMITTER,
  useFactory: async () => {
    try {
      const loaded = (await import('@nestjs/event-emitter')) as { EventEmitter2: unknown }
      return loaded.EventEmitter2
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  },
}

function isMissing(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
