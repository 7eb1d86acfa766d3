/** One pino for everything: the shop's own lines, Botmesh's, and Nest's. */
import type { LoggerService } from '@nestjs/common'
import type { Logger as BotmeshLogger } from '@botmesh/core'
import { pino, type Logger } from 'pino'
import pretty from 'pino-pretty'

/** Token of the application's logger. */
export const PINO = Symbol('pino')

/** @param options.pretty readable instead of one JSON object a line. */
export function createLogger(options: { replica: string; level?: string; pretty?: boolean }): Logger {
  const settings = { level: options.level ?? 'info', base: { replica: options.replica } }
  // Written synchronously, so that the last words before a crash are not lost.
  return options.pretty === true
    ? pino(settings, pretty({ sync: true, ignore: 'pid,hostname' }))
    : pino(settings, pino.destination({ fd: 1, sync: true }))
}

/** A bot's lines, each with its name. Not a child of pino: a line that names the bot itself would name it twice. */
export function botLines(target: Logger, bot: string): BotmeshLogger {
  return {
    debug: (details, message) => target.debug({ bot, ...details }, message),
    info: (details, message) => target.info({ bot, ...details }, message),
    warn: (details, message) => target.warn({ bot, ...details }, message),
    error: (details, message) => target.error({ bot, ...details }, message),
  }
}

/** Nest's own lines, at `debug` unless they matter: a replica's log is about chats. */
export class NestLines implements LoggerService {
  constructor(private readonly target: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest)
  }
  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest)
  }
  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest)
  }
  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest)
  }
  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest)
  }
  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest)
  }

  private write(
    level: 'trace' | 'debug' | 'warn' | 'error' | 'fatal',
    message: unknown,
    rest: unknown[],
  ): void {
    const context = rest.at(-1)
    const details = { nest: typeof context === 'string' ? context : undefined }
    if (message instanceof Error) this.target[level]({ ...details, err: message }, message.message)
    else this.target[level](details, String(message))
  }
}
