/**
 * The library's own routes: webhooks, pages of transports, health. They are answered before the application's body
 * parsers, global prefix, guards and interceptors see the request (signatures are over the raw body), through the
 * HTTP adapter: a first middleware on Express, an `onRequest` hook on Fastify. Everything else passes untouched.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Inject, Injectable } from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import { ConfigError, type PageRequest } from '@botmesh/core'
import { BotRegistry, type RegisteredBot } from '../bot-registry.js'
import { discardRest, readBody, targetOf, writeAnswer, type Answer } from './plain-http.js'

/** Answers at once. */
export type PlainRoute = () => Answer

type PlainHandler = (request: IncomingMessage, response: ServerResponse, pass: () => void) => void

/** The parts of Fastify that are used; its types may not be installed. */
interface FastifyLike {
  addHook(
    name: 'onRequest',
    hook: (
      request: { raw: IncomingMessage },
      reply: { raw: ServerResponse; hijack(): void },
      done: () => void,
    ) => void,
  ): void
}

const RETRY = { 'retry-after': '1', connection: 'close' }

@Injectable()
export class FrontDoor {
  private readonly routes = new Map<string, PlainRoute>()
  private readonly webhooks = new Map<string, RegisteredBot>()
  private pages: RegisteredBot[] = []
  private draining = false

  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(BotRegistry) private readonly registry: BotRegistry,
  ) {
    // Now if the application is being created, so that this stands first; in a testing module when one is.
    // The first versions of Nest 11 tell nobody; there the adapter of an application is set before this is made.
    const { init$ } = host as Partial<Pick<HttpAdapterHost, 'init$'>>
    if (init$ !== undefined) init$.subscribe(() => this.mount())
    else if (this.mounted) this.mount()
  }

  /** False in an application without HTTP. */
  get mounted(): boolean {
    return Boolean(this.host.httpAdapter)
  }

  /** Opens the routes of the bots. @throws ConfigError for two webhooks of one path. */
  open(): void {
    for (const registered of this.registry.all) {
      const { name, bot, options, logger } = registered
      if (options.webhooks === null) continue
      const { provider } = bot
      if (provider.http !== undefined) this.pages.push(registered)
      if (provider.handle === undefined) continue
      const { path } = options.webhooks
      const other = this.webhooks.get(path)
      if (other !== undefined) {
        throw new ConfigError(
          `Bots "${other.name}" and "${name}" have the same webhook path ${path}: set webhooks.path of one of them.`,
          { option: 'webhooks.path', value: path },
        )
      }
      this.webhooks.set(path, registered)
      if (this.mounted) logger.info({ bot: name, path, provider: provider.id }, 'webhook route')
      else
        logger.warn(
          { bot: name, provider: provider.id },
          'this application has no HTTP server: pass webhook calls to bot.handleWebhook() yourself',
        )
    }
  }

  /** A route of the library's own, GET and HEAD. */
  get(path: string, route: PlainRoute): void {
    this.routes.set(path, route)
  }

  /** True if `get` was called for it. */
  has(path: string): boolean {
    return this.routes.has(path)
  }

  /** From now on webhooks are answered 503, so that the platform or the balancer tries another replica. */
  drain(): void {
    this.draining = true
  }

  private mount(): void {
    const { httpAdapter } = this.host
    if (!httpAdapter) return
    if (httpAdapter.getType() === 'fastify') {
      const instance = httpAdapter.getInstance<FastifyLike>()
      instance.addHook('onRequest', (request, reply, done) => {
        if (!this.serve(request.raw, reply.raw, () => reply.hijack())) done()
      })
      return
    }
    const first: PlainHandler = (request, response, pass) => {
      if (!this.serve(request, response)) pass()
    }
    httpAdapter.use(first)
  }

  /** @returns false if the request is not for this library. @param claim called before anything is written. */
  private serve(request: IncomingMessage, response: ServerResponse, claim?: () => void): boolean {
    const { path, query } = targetOf(request)
    const answer = this.route(request, path)
    if (answer !== null) {
      claim?.()
      writeAnswer(request, response, answer)
      return true
    }
    const webhook = this.webhooks.get(path)
    if (webhook === undefined) return false
    claim?.()
    this.webhook(webhook, request, query).then(
      (given) => writeAnswer(request, response, given),
      (error: unknown) => {
        webhook.logger.error({ bot: webhook.name, path, err: error }, 'a webhook call failed')
        writeAnswer(request, response, { status: 500 })
      },
    )
    return true
  }

  private route(request: IncomingMessage, path: string): Answer | null {
    const method = request.method ?? 'GET'
    if (method === 'GET' || method === 'HEAD') {
      const route = this.routes.get(path)
      if (route !== undefined) return route()
    }
    if (this.pages.length === 0) return null
    const { originalUrl } = request as IncomingMessage & { originalUrl?: string }
    const page: PageRequest = { method, path: originalUrl ?? request.url ?? '/', headers: request.headers }
    for (const { bot } of this.pages) {
      const answer = bot.provider.http?.(page)
      if (answer) return answer
    }
    return null
  }

  private async webhook(
    { bot, options, logger, name }: RegisteredBot,
    request: IncomingMessage,
    query: Record<string, string>,
  ): Promise<Answer> {
    if (this.draining) return { status: 503, headers: RETRY }
    const body = await readBody(request, options.webhooks?.maxBytes ?? 0)
    if ('refused' in body) {
      if (body.refused === 'consumed') {
        logger.error(
          { bot: name },
          'the body of a webhook call was read before Botmesh saw it; enable rawBody or mount the parser later',
        )
      }
      const status = { 'too-large': 413, aborted: 400, consumed: 500 }[body.refused]
      if (body.refused === 'too-large') await discardRest(request)
      return { status, headers: { connection: 'close' } }
    }
    return await bot.handleWebhook({
      method: request.method ?? 'GET',
      headers: request.headers,
      query,
      rawBody: body.bytes,
    })
  }
}
