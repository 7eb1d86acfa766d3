/** The rules that every transport keeps, checked on Discord against the double. */
import { describe, expect, it } from '@jest/globals'
import { DiscordProvider } from '@botmesh/discord'
import { providerSuite } from '@botmesh/core/testing'
import { CHANNEL, DiscordDouble, TOKEN } from '../../../test/doubles/discord/index.js'

const WRONG = TOKEN.replace('AAsecret', 'AAwrong')

providerSuite(
  { describe, it, expect },
  {
    name: 'Discord',
    guarantees: {
      connects: true,
      refusesSends: true,
      redelivers: true,
      limitsSends: true,
      losesAnswers: true,
      groups: true,
      refusesCredentials: true,
      reconnects: true,
    },
    bed: async () => {
      const discord = await new DiscordDouble().listen()
      const provider = new DiscordProvider({ token: TOKEN, account: 'tienda', apiRoot: discord.apiRoot })
      return {
        provider,
        connections: () => discord.gateway.open,
        userWrites: async (body) => void discord.say(body),
        received: () => discord.sent.map(({ body }) => String(body['content'])),
        refuseNextSend: () =>
          discord.failNext(/messages$/, {
            kind: 'error',
            status: 403,
            code: 50013,
            message: 'Missing Permissions',
          }),
        limitNextSend: (retryAfterMs) => discord.failNext(/messages$/, { kind: 'limit', retryAfterMs }),
        loseNextAnswer: () => discord.failNext(/messages$/, { kind: 'lost-answer' }),
        groupWrites: async (body) => void discord.sayInGuild(body),
        otherChat: CHANNEL,
        refused: () => new DiscordProvider({ token: WRONG, account: 'otra', apiRoot: discord.apiRoot }),
        secrets: [TOKEN, WRONG],
        outage: () => {
          discord.away = true
          discord.gateway.drop()
          return () => (discord.away = false)
        },
        close: () => discord.close(),
      }
    },
  },
)
