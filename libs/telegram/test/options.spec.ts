/** Bad options end at construction with an error that names them, and never shows a secret. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '@botmesh/core'
import { TelegramProvider, type TelegramOptions } from '@botmesh/telegram'
import { TOKEN } from './samples.js'

const WEBHOOK = { secret: 's3cret-of-the-tests' }

describe('options of TelegramProvider', () => {
  it.each<[object, string, RegExp]>([
    [{}, 'token', /undefined; accepted: the token from @BotFather/],
    [{ token: 'tokenless-secret' }, 'token', /\(hidden\)/],
    [{ token: TOKEN, mode: 'push' }, 'mode', /'polling', 'webhook'/],
    [{ token: TOKEN, mode: 'webhook' }, 'webhook', /needs a secret/],
    [{ token: TOKEN, mode: 'polling', webhook: WEBHOOK }, 'webhook', /nothing in mode 'polling'/],
    [{ token: TOKEN, webhook: { secret: 'spaces are not allowed' } }, 'webhook.secret', /\(hidden\)/],
    [
      { token: TOKEN, webhook: { secret: 'fifteen-letters' } },
      'webhook.secret',
      /\(hidden\)"; accepted: 16 to/,
    ],
    [{ token: TOKEN, webhook: { ...WEBHOOK, url: 'http://a.example' } }, 'webhook.url', /an https URL/],
    [{ token: TOKEN, webhook: { ...WEBHOOK, url: 'bot.example' } }, 'webhook.url', /http\(s\) URL/],
    [{ token: TOKEN, webhook: { ...WEBHOOK, path: '/x' } }, 'webhook.path', /without webhook\.url/],
    [
      { token: TOKEN, webhook: { ...WEBHOOK, url: 'https://a.example/x', path: '/y' } },
      'webhook.path',
      /already/,
    ],
    [{ token: TOKEN, webhook: { ...WEBHOOK, sceret: 'x' } }, 'sceret', /did you mean "secret"/],
    [{ token: TOKEN, apiRoot: 'ftp://x' }, 'apiRoot', /http\(s\) URL/],
    [{ token: TOKEN, edits: 'maybe' }, 'edits', /'ignore', 'deliver'/],
    [{ token: TOKEN, pollTimeoutMs: '2h' }, 'pollTimeoutMs', /from 1000 to 50000/],
    [{ token: TOKEN, sendTimeoutMs: -1 }, 'sendTimeoutMs', /milliseconds/],
    [{ token: TOKEN, maxBodyBytes: 1.5 }, 'maxBodyBytes', /whole number/],
    [{ token: TOKEN, tokn: 'x' }, 'tokn', /did you mean "token"/],
  ])('%#: %j', (options, option, message) => {
    const make = () => new TelegramProvider(options as TelegramOptions)
    expect(make).toThrow(ConfigError)
    expect(make).toThrow(message)
    expect(make).toThrow(expect.objectContaining({ details: expect.objectContaining({ option }) }))
    expect(make).toThrow(/^TelegramProvider /)
    expect(make).not.toThrow(/tokenless-secret|spaces are not allowed|fifteen-letters|AAsecret/)
  })

  it('a Bot API server of one’s own may deliver by http', () => {
    const webhook = { ...WEBHOOK, url: 'http://bot.internal:8080' }
    expect(new TelegramProvider({ token: TOKEN, apiRoot: 'http://api.internal:8081', webhook }).id).toBe(
      'telegram:123456789',
    )
  })

  it('the account defaults to the bot’s id, the mode follows from what is given', () => {
    expect(new TelegramProvider({ token: TOKEN }).id).toBe('telegram:123456789')
    expect(new TelegramProvider({ token: TOKEN }).capabilities.exclusiveSession).toBe(true)
    const hooked = new TelegramProvider({ token: TOKEN, account: 'tienda', webhook: WEBHOOK })
    expect(hooked.id).toBe('telegram:tienda')
    expect(hooked.handle).toBeDefined()
  })
})
