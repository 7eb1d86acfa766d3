/** Options and life cycle of the transports for Messenger and Instagram. */
import { describe, expect, it } from '@jest/globals'
import { Bot, ConfigError, type Message } from '@botmesh/core'
import { ManualClock } from '@botmesh/core/testing'
import type { PageOptions } from '@botmesh/meta/page'
import { GraphApiDouble } from '../../doubles/graph-api.js'
import { optionsFor, TOKEN, type PageFixture } from './fixture.js'

/** @param make the provider from options as they are. @param idOption the option of the account's id. */
export function pageOptionsSuite(
  fixture: PageFixture,
  make: (options: object) => { id: string; capabilities: object },
  idOption: string,
): void {
  const good = {
    [idOption]: fixture.accountId,
    accessToken: TOKEN,
    appSecret: 'secret',
    verifyToken: 'verify',
  }

  describe(`${fixture.name}: options`, () => {
    it.each<[object, string, RegExp]>([
      [{ [idOption]: undefined }, idOption, /undefined.*environment variable/],
      [{ accessToken: undefined }, 'accessToken', /environment variable/],
      [{ appSecret: '' }, 'appSecret', /accepted: a non-empty string/],
      [{ verifyToken: 7 }, 'verifyToken', /non-empty/],
      [{ graphUrl: 'graph.facebook.com' }, 'graphUrl', /http\(s\) URL/],
      [{ apiVersion: '23' }, 'apiVersion', /'v23\.0'/],
      [{ maxBodyBytes: 10 }, 'maxBodyBytes', /at least 1024/],
      [{ sendTimeoutMs: '1 eternity' }, 'sendTimeoutMs', /milliseconds/],
      [{ longText: 'cut' }, 'longText', /'split', 'refuse'/],
      [{ edits: 'maybe' }, 'edits', /'ignore', 'deliver'/],
      [{ onReceipt: 'log' }, 'onReceipt', /a function/],
      [{ acessToken: 'x' }, 'acessToken', /did you mean "accessToken"/],
    ])('%j', (wrong, option, message) => {
      const construct = () => make({ ...good, ...wrong })
      expect(construct).toThrow(ConfigError)
      expect(construct).toThrow(message)
      expect(construct).toThrow(expect.objectContaining({ details: expect.objectContaining({ option }) }))
    })

    it('P2: is not exclusive; its id names the account', () => {
      expect(make(good).id).toBe(`${fixture.kind}:${fixture.accountId}`)
      expect(make({ ...good, account: 'shop' }).id).toBe(`${fixture.kind}:shop`)
      expect(make(good).capabilities).not.toHaveProperty('exclusiveSession')
    })
  })

  describe(`${fixture.name}: pauses`, () => {
    it('scenario 16: a limit holds back the account concerned, for as long as the platform asks, and no other', async () => {
      const graph = await new GraphApiDouble({ rules: fixture.rules }).listen()
      const clock = new ManualClock()
      const botOf = async (account: string) => {
        const provider = fixture.make(optionsFor(graph.url, { account } satisfies Partial<PageOptions>))
        const bot = new Bot({ provider, clock })
        await bot.start()
        return bot
      }
      const [limited, free] = [await botOf('limited'), await botOf('free')]
      try {
        const [first, second] = fixture.users
        graph.failNext({ kind: 'error', status: 400, code: 613, headers: { 'retry-after': '7' } })
        const held = limited.send({ chatId: first }, 'one')
        await graph.until(() => graph.requests.length === 1)
        await free.send({ chatId: first }, 'of another account')
        const behind = limited.send({ chatId: second }, 'two')
        let waitedMs = 0
        while (graph.sends.length < 3) {
          if (waitedMs < 7_000) expect(textsOf(graph)).toEqual(['of another account'])
          await clock.advance(500)
          await new Promise((resolve) => setImmediate(resolve))
          waitedMs += 500
        }
        await Promise.all([held, behind])
        expect(textsOf(graph).sort()).toEqual(['of another account', 'one', 'two'])
      } finally {
        await Promise.all([limited.stop(), free.stop()])
        await graph.close()
      }
    })
  })
}

function textsOf(graph: GraphApiDouble): string[] {
  return graph.sends.map((send) => (send.body['message'] as Pick<Message, 'body'> & { text: string }).text)
}
