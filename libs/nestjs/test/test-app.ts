/** Applications for these tests: real ones, on Express or Fastify, listening, closed after each test. */
import 'reflect-metadata'
import { afterEach } from '@jest/globals'
import type { INestApplication, LoggerService, ModuleMetadata } from '@nestjs/common'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import { waitFor } from '../../../test/support/index.js'

export const PLATFORMS = ['express', 'fastify'] as const
export type Platform = (typeof PLATFORMS)[number]

/** Keeps what was logged. */
export class TestLogger implements LoggerService {
  readonly lines: { level: string; text: string }[] = []
  log = (message: unknown): void => this.add('log', message)
  debug = (message: unknown): void => this.add('debug', message)
  verbose = (message: unknown): void => this.add('verbose', message)
  warn = (message: unknown): void => this.add('warn', message)
  error = (message: unknown): void => this.add('error', message)
  fatal = (message: unknown): void => this.add('fatal', message)

  texts(level: string): string[] {
    return this.lines.filter((one) => one.level === level).map((one) => one.text)
  }

  private add(level: string, message: unknown): void {
    this.lines.push({ level, text: String(message) })
  }
}

export interface Running {
  app: INestApplication
  url: string
  logger: TestLogger
}

const open = new Set<INestApplication>()
afterEach(async () => {
  for (const app of open) await app.close()
  open.clear()
})

export interface AppOptions {
  platform?: Platform
  /** Between creation and `listen`: global prefix, guards, parsers. */
  prepare?: (app: INestApplication) => unknown
}

/** Creates the application and listens on a free port of 127.0.0.1. */
export async function runApp(module: ModuleMetadata, options: AppOptions = {}): Promise<Running> {
  const logger = new TestLogger()
  const testing = await Test.createTestingModule(module).setLogger(logger).compile()
  const app =
    options.platform === 'fastify'
      ? testing.createNestApplication<NestFastifyApplication>(new FastifyAdapter(), { logger })
      : testing.createNestApplication({ logger })
  open.add(app)
  await options.prepare?.(app)
  await app.listen(0, '127.0.0.1')
  return { app, url: await app.getUrl(), logger }
}

/** Creates and initialises without listening; for what must fail. */
export async function initApp(module: ModuleMetadata): Promise<void> {
  const logger = new TestLogger()
  const testing = await Test.createTestingModule(module).setLogger(logger).compile()
  const app = testing.createNestApplication({ logger })
  open.add(app)
  await app.init()
}

/** Waits for what becomes true. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await waitFor(condition, { what: String(condition) })
}
