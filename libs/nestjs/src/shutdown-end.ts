/**
 * When an application's shutdown is over. Nest calls hooks module by module: this one is put first in its order of
 * initialisation, and so last in its order of shutdown.
 */
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
} from '@nestjs/common'
import { ModulesContainer } from '@nestjs/core'
import { systemClock, type Timer } from '@botmesh/core'

/** How long either half of the rest is waited for: what the modules close, then the server and the last hooks. */
const HALF_MS = 2000

@Injectable()
export class ShutdownEnd implements BeforeApplicationShutdown, OnApplicationShutdown {
  private tell!: () => void
  private limit: Timer | undefined
  /**
   * Resolves when every hook has run and whoever closed the application could go on. Nest 12 logs a hook that throws
   * and goes on; a server that cannot be closed ends the shutdown in the middle, as does in Nest 11 a hook that throws.
   * So from the end of the drain on it waits for a limited time only.
   */
  readonly over = new Promise<void>((resolve) => (this.tell = resolve))

  /** The bots have drained. */
  limitWait(): void {
    this.limit?.cancel()
    this.limit = systemClock.setTimeout(this.tell, HALF_MS)
  }

  /** The modules have closed what they have: now the server does. */
  beforeApplicationShutdown(): void {
    this.limitWait()
  }

  onApplicationShutdown(): void {
    this.limit?.cancel()
    // Nest still ends the process with the signal, or the application with a code of its own.
    systemClock.setTimeout(this.tell, 0)
  }
}

@Module({ providers: [ShutdownEnd], exports: [ShutdownEnd] })
export class ShutdownEndModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    for (const one of modules.values()) if (one.metatype === ShutdownEndModule) one.distance = Infinity
  }
}
