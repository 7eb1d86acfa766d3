/**
 * The logger of a store or a coordinator that may be given none: then it says nothing until a bot lends it its own
 * (`useLogger`). What it was given itself stays; of several bots the first one lends.
 */
import type { Logger } from '../contracts/logger.js'
import { silentLogger } from './silent-logger.js'

export class LentLogger implements Logger {
  private to: Logger | null

  constructor(own?: Logger) {
    this.to = own ?? null
  }

  lend(logger: Logger): void {
    this.to ??= logger
  }

  // A call through the logger itself: its methods may need their own `this`.
  debug(details: object, message: string): void {
    this.target.debug(details, message)
  }
  info(details: object, message: string): void {
    this.target.info(details, message)
  }
  warn(details: object, message: string): void {
    this.target.warn(details, message)
  }
  error(details: object, message: string): void {
    this.target.error(details, message)
  }

  private get target(): Logger {
    return this.to ?? silentLogger
  }
}
