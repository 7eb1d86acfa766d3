/**
 * When an application's shutdown is over. Nest calls hooks module by module: this one is put first in its order of
 * initialisation, and so last in its order of shutdown.
 */
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common'
import { ModulesContainer } from '@nestjs/core'
import { systemClock } from '@botmesh/core'

@Injectable()
export class ShutdownEnd implements OnApplicationShutdown {
  private tell!: () => void
  /** Resolves when every hook has run and whoever closed the application could go on. Never, if a hook throws. */
  readonly over = new Promise<void>((resolve) => (this.tell = resolve))

  onApplicationShutdown(): void {
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
