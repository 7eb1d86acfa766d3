/** A logger that says nothing: the default wherever no logger was given. */
import type { Logger } from '../contracts/logger.js'

const nothing = (): void => undefined

export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
