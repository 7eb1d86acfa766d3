/** Options: what is refused at construction, and how it is said; files that come in. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigError } from '@botmesh/core'
import { DiscordProvider } from '@botmesh/discord'
import { BOT_ID, TOKEN } from '../../../test/doubles/discord/index.js'

describe('P2: options of DiscordProvider', () => {
  it('exclusive; its id is that of the bot unless named', () => {
    expect(new DiscordProvider({ token: TOKEN }).id).toBe(`discord:${BOT_ID}`)
    const provider = new DiscordProvider({ token: TOKEN, account: 'tienda' })
    expect(provider.id).toBe('discord:tienda')
    expect(provider.capabilities.exclusiveSession).toBe(true)
    expect(provider.state).toEqual({ status: 'closed', reason: 'not started' })
  })

  it('C1: takes durations and command builders', () => {
    const commands = [
      { name: 'pedido', description: 'Haz un pedido' },
      { name: 'Saludar', type: 2 },
      { name: 'estado-ñ', description: 'x' },
    ]
    expect(() => new DiscordProvider({ token: TOKEN, sendTimeoutMs: '5s', commands })).not.toThrow()
  })

  it.each<[string, object]>([
    ['token', { token: '' }],
    ['token', { token: undefined }],
    ['token', { token: `Bot ${TOKEN}` }],
    ['token', { token: 'bm90LWEtbnVtYmVy.Gabcde.secret' }],
    ['account', { account: '' }],
    ['listen', { listen: 'everything' }],
    ['messageContent', { messageContent: false }],
    ['messageContent', { messageContent: 'yes' }],
    ['bots', { bots: 'all' }],
    ['longText', { longText: 'cut' }],
    ['maxFileBytes', { maxFileBytes: 0 }],
    ['sendTimeoutMs', { sendTimeoutMs: 'soon' }],
    ['apiRoot', { apiRoot: 'discord.com' }],
    ['commands', { commands: 'pedido' }],
    ['commands', { commands: [{ name: 'Pedido' }] }],
    ['commands', { commands: [{ name: 'a b' }] }],
    ['commands', { commands: [{ name: 'a' }, { name: 'a' }] }],
    ['commands', { commands: [null] }],
    ['commandsGuild', { commandsGuild: '603001000000000001' }],
    ['commandsGuild', { commandsGuild: 'tienda', commands: [] }],
    ['intent', { intent: 1 }],
  ])('refuses %s: %p', (option, options) => {
    const make = () => new DiscordProvider({ token: TOKEN, ...options })
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(expect.objectContaining({ details: expect.objectContaining({ option }) }))
  })
})

describe('attachments', () => {
  let server: Server | undefined
  afterEach(() => new Promise((resolve) => (server === undefined ? resolve(null) : server.close(resolve))))

  it('are fetched by their link, within limits; an expired link says so', async () => {
    server = createServer((request, response) => {
      response.writeHead(request.url === '/gone' ? 404 : 200, { connection: 'close' }).end('contenido')
    })
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
    const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const provider = new DiscordProvider({ token: TOKEN })
    const { data } = await provider.download({ kind: 'document', url: `${root}/a` })
    expect(Buffer.from(data).toString()).toBe('contenido')
    await expect(
      provider.download({ kind: 'document', url: `${root}/a` }, { maxBytes: 3 }),
    ).rejects.toMatchObject({
      outcome: 'final',
      message: expect.stringContaining('raise maxBytes'),
    })
    await expect(provider.download({ kind: 'document', url: `${root}/gone` })).rejects.toMatchObject({
      outcome: 'final',
      message: expect.stringContaining('expired'),
    })
    await expect(provider.download({ kind: 'document' })).rejects.toThrow(ConfigError)
  })
})
