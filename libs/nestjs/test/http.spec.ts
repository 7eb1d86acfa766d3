/** Webhooks, pages and sockets on real servers, with everything in the way that an application puts there. */
import { describe, expect, it } from '@jest/globals'
import { request } from 'node:http'
import { Controller, Get, Post, type CanActivate, type INestApplication } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { Bot } from '@botmesh/core'
import { BotmeshModule } from '../src/index.js'
import { initApp, PLATFORMS, runApp } from './test-app.js'
import { PageTestProvider, WebhookTestProvider } from './test-provider.js'

class Nobody implements CanActivate {
  canActivate(): boolean {
    return false
  }
}

@Controller()
class Own {
  @Get('own') own(): string {
    return 'own'
  }
  @Post('own') post(): string {
    return 'posted'
  }
}

function obstacles(app: INestApplication): void {
  app.setGlobalPrefix('api')
}

const post = (url: string, body: string, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })

describe.each(PLATFORMS)('webhooks on %s', (platform) => {
  it('N2: survive a global prefix, global guards and body parsers, and see the raw body', async () => {
    const provider = new WebhookTestProvider()
    const { url } = await runApp(
      {
        imports: [BotmeshModule.forRoot({ provider, webhooks: { path: '/hooks/test' } })],
        controllers: [Own],
        providers: [{ provide: APP_GUARD, useClass: Nobody }],
      },
      { platform, prepare: obstacles },
    )
    const raw = '{ "unusual" :  "spacing" }'
    const answer = await post(`${url}/hooks/test?mode=subscribe&mode=second`, raw)
    expect(await answer.text()).toBe(`POST ${raw.length} subscribe`)
    expect(answer.headers.get('content-type')).toBe('text/plain')
    expect(Buffer.from(provider.calls[0]?.rawBody ?? []).toString()).toBe(raw)
    expect((await fetch(`${url}/hooks/test?mode=verify`)).status).toBe(200)
    expect((await fetch(`${url}/api/own`)).status).toBe(403)
  })

  it('N2: leaves the routes of the application alone', async () => {
    const { url } = await runApp(
      { imports: [BotmeshModule.forRoot({ provider: new WebhookTestProvider() })], controllers: [Own] },
      { platform },
    )
    expect(await (await fetch(`${url}/own`)).text()).toBe('own')
    expect(await (await post(`${url}/own`, '{"a":1}')).text()).toBe('posted')
    expect((await fetch(`${url}/nowhere`)).status).toBe(404)
    expect((await post(`${url}/webhooks/test/a`, 'x', { 'content-type': 'text/plain' })).status).toBe(200)
  })

  it('scenario 25: a body over the limit is 413, announced or not', async () => {
    const provider = new WebhookTestProvider()
    const { url } = await runApp(
      { imports: [BotmeshModule.forRoot({ provider, webhooks: { path: '/hook', maxBytes: 100 } })] },
      { platform },
    )
    expect((await post(`${url}/hook`, 'x'.repeat(101))).status).toBe(413)
    expect(await chunked(`${url}/hook`, 'x'.repeat(101))).toBe(413)
    expect(await chunked(`${url}/hook`, 'x'.repeat(100))).toBe(200)
    // More than the sockets hold: whoever sends it still reads the answer, instead of meeting a reset.
    const large = 'x'.repeat(6 * 1024 * 1024)
    expect((await post(`${url}/hook`, large)).status).toBe(413)
    expect(await chunked(`${url}/hook`, large)).toBe(413)
    expect(provider.calls).toHaveLength(1)
  })

  it('N5: while draining, webhooks are answered 503 with Retry-After', async () => {
    const provider = new WebhookTestProvider()
    let release: () => void = () => undefined
    const busy = new Promise<void>((resolve) => (release = resolve))
    const { app, url } = await runApp(
      { imports: [BotmeshModule.forRoot({ provider, webhooks: { path: '/hook' } })] },
      {
        platform,
        prepare: (created) => void created.get(Bot).onMessage(() => busy),
      },
    )
    await provider.deliver('chat', 'hold on')
    const closing = app.close()
    const answer = await post(`${url}/hook`, '{}')
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    release()
    await closing
  })

  it('B2: pages of a transport are served, and its sockets attached to the server', async () => {
    const provider = new PageTestProvider()
    const { app, url } = await runApp(
      { imports: [BotmeshModule.forRoot({ provider })] },
      { platform, prepare: obstacles },
    )
    const page = await fetch(`${url}/page?x=1`)
    expect(await page.text()).toBe('<p>page</p>')
    expect((await fetch(`${url}/page`, { method: 'HEAD' })).status).toBe(200)
    expect(provider.attachedTo).toEqual([app.getHttpServer()])
    await app.close()
    expect(provider.attachedTo).toEqual([])
  })
})

it('two bots with one webhook path are refused by name', async () => {
  const webhooks = { path: '/hook' }
  await expect(
    initApp({
      imports: [
        BotmeshModule.forRoot({ provider: new WebhookTestProvider(), webhooks }),
        BotmeshModule.forRoot({ name: 'b', provider: new WebhookTestProvider({ account: 'b' }), webhooks }),
      ],
    }),
  ).rejects.toThrow('Bots "default" and "b" have the same webhook path /hook')
})

it('webhooks: false mounts nothing', async () => {
  const provider = new WebhookTestProvider()
  const { url } = await runApp({ imports: [BotmeshModule.forRoot({ provider, webhooks: false })] })
  expect((await post(`${url}/webhooks/test/a`, '{}')).status).toBe(404)
})

/** Without a Content-Length. */
function chunked(url: string, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method: 'POST', headers: { 'content-type': 'text/plain' } }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    call.on('error', reject)
    call.write(body.slice(0, 10))
    call.end(body.slice(10))
  })
}
