/** The library's log lines through Nest's logger: the default where no `logger` is given. */
import { Logger as NestLogger } from '@nestjs/common'
import type { Logger } from '@botmesh/core'

/** @param context what Nest prints in brackets. */
export function nestLogger(context: string): Logger {
  const target = new NestLogger(context)
  return {
    debug: (details, message) => target.debug(line(details, message)),
    info: (details, message) => target.log(line(details, message)),
    warn: (details, message) => target.warn(line(details, message)),
    error: (details, message) => target.error(line(details, message), stackOf(details)),
  }
}

function line(details: object, message: string): string {
  const shown = Object.entries(details)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${shortly(value)}`)
  return [message, ...shown].join(' ')
}

function shortly(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  if (typeof value !== 'object' || value === null) return String(value)
  try {
    return JSON.stringify(value)
  } catch {
    return '[not serialisable]'
  }
}

function stackOf(details: object): string | undefined {
  return Object.values(details).find((value): value is Error => value instanceof Error)?.stack
}
