/** The table of docs/guides/transports.md says of each transport what the transport says of itself. */
import { describe, expect, it } from '@jest/globals'
import type { Provider } from '@botmesh/core'
import { BaileysProvider } from '@botmesh/baileys'
import { DiscordProvider } from '@botmesh/discord'
import { EmailProvider } from '@botmesh/email'
import { InstagramProvider } from '@botmesh/instagram'
import { MessengerProvider } from '@botmesh/messenger'
import { MetaProvider } from '@botmesh/meta'
import { TelegramProvider } from '@botmesh/telegram'
import { WebchatProvider } from '@botmesh/webchat'
import { read } from '../tidy/sources.js'

const app = { account: 'shop', accessToken: 'x', appSecret: 'x', verifyToken: 'x' }
const mail = { host: 'mail.example.org', password: 'x' }
const address = 'shop@example.org'
const PROVIDERS: Record<string, Provider[]> = {
  meta: [new MetaProvider({ ...app, phoneNumberId: '1' })],
  baileys: [new BaileysProvider({ session: 'shop' })],
  telegram: [
    new TelegramProvider({ token: '1:x', account: 'shop' }),
    new TelegramProvider({ token: '1:x', account: 'shop', webhook: { secret: 'x'.repeat(16) } }),
  ],
  messenger: [new MessengerProvider({ ...app, pageId: '1' })],
  instagram: [new InstagramProvider({ ...app, accountId: '1' })],
  discord: [new DiscordProvider({ token: `${Buffer.from('123456789012345678').toString('base64url')}.x.y` })],
  email: [
    new EmailProvider({ address, imap: mail, smtp: mail }),
    new EmailProvider({ address, smtp: mail, webhook: { secret: 'x'.repeat(16) } }),
  ],
  webchat: [new WebchatProvider({ account: 'shop' })],
}

const rows = read('docs/guides/transports.md')
  .split('\n')
  .filter((line) => line.startsWith('| [`@botmesh/'))
  .map((line) => line.split('|').slice(1, -1))
  .map(([name = '', _platform, _arrival, exclusive = '', buttons = '', files = '', groups = '']) => ({
    name: /@botmesh\/(\w+)/.exec(name)?.[1] ?? '',
    ...{ exclusive: exclusive.trim(), buttons: buttons.trim(), files: files.trim(), groups: groups.trim() },
  }))

describe('guide to transports', () => {
  it('has a row for each of them', () => {
    expect(rows.map(({ name }) => name).toSorted()).toEqual(Object.keys(PROVIDERS).toSorted())
  })

  it.each(rows)('P2, B4: $name', ({ name, exclusive, buttons, files, groups }) => {
    const [first, other = first] = PROVIDERS[name] ?? []
    const says = (text: string) => text !== 'no'
    expect(first?.capabilities.exclusiveSession === true).toBe(says(exclusive))
    // A word beside yes and no names the one way of two that is exclusive.
    expect(other?.capabilities.exclusiveSession === true).toBe(exclusive === 'yes')
    expect(first?.capabilities.buttons === true).toBe(buttons !== 'as numbered lines')
    expect(first?.capabilities.media === true).toBe(says(files))
    expect(first?.capabilities.groups === true).toBe(says(groups))
  })
})
