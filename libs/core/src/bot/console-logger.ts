/** The logger of a bot that was given none: warnings and errors go to the console, the rest nowhere. */
import type { Logger } from '../contracts/logger.js'

export const consoleLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: (details, message) => console.warn(`[botmesh] ${message}`, details),
  error: (details, message) => console.error(`[botmesh] ${message}`, details),
}
