/**
 * What the library logs through: the shape of pino, which can be passed as it is. Secrets never go here. An error
 * stands under `err`, where pino writes its message and stack; under another name it would write neither.
 */
export type LogMethod = (details: object, message: string) => void

export interface Logger {
  debug: LogMethod
  info: LogMethod
  warn: LogMethod
  error: LogMethod
}
