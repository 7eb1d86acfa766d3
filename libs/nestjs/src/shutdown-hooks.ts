/**
 * Are Nest's shutdown hooks on? Nest keeps that to itself, but both it (`enableShutdownHooks`) and an application with
 * a handler of its own listen to SIGTERM, and neither can before the application has been created. So: has anybody
 * begun to listen since this was constructed? Listeners from before (of other applications, of libraries) do not count.
 */
import { Injectable } from '@nestjs/common'

const SIGNAL = 'SIGTERM'

@Injectable()
export class ShutdownHooks {
  private readonly before = new Set<unknown>(process.listeners(SIGNAL))

  /** True if somebody will act on SIGTERM. Right from `app.init()` on. */
  get enabled(): boolean {
    return process.listeners(SIGNAL).some((listener) => !this.before.has(listener))
  }
}
