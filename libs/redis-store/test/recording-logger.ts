/** A logger that keeps what it is told. */
import { inspect } from 'node:util'
import type { Logger } from '@botmesh/core'

export interface RecordingLogger extends Logger {
  readonly lines: { level: string; message: string; details: object }[]
  /** All of it as one text, for "this is nowhere in it". */
  text(): string
  has(level: string, part: RegExp): boolean
}

export function recordingLogger(): RecordingLogger {
  const lines: RecordingLogger['lines'] = []
  const at =
    (level: string) =>
    (details: object, message: string): void =>
      void lines.push({ level, message, details })
  return {
    lines,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    text: () => lines.map((line) => `${line.level} ${line.message} ${shown(line.details)}`).join('\n'),
    has: (level, part) => lines.some((line) => line.level === level && part.test(line.message)),
  }
}

/** All that a logger could print of it: causes, and whatever else an error carries. */
export function shown(value: unknown): string {
  return inspect(value, { depth: Infinity, showHidden: true })
}
