/**
 * docs/capabilities.md: what each transport receives and sends, and whether it is exclusive, as the providers
 * themselves declare it. After a build: `node tools/capabilities.mjs` writes the file; a tidy test compares it.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { format, resolveConfig } from 'prettier'

export const FILE = fileURLToPath(new URL('../docs/capabilities.md', import.meta.url))

const secret = 'only to be looked at'
const address = 'bot@example.com'
const smtp = { host: 'localhost', user: 'bot', password: secret }
const page = { accessToken: secret, appSecret: secret, verifyToken: secret }
const telegram = { token: '1:only-to-be-looked-at', account: 'a' }
const discord = {
  token: `${Buffer.from('123456789012345678').toString('base64url')}.AAAAAA.${'B'.repeat(32)}`,
  account: 'a',
}

/** Name, package, class, and no more options than it asks for to be made. @type {[string, string, string, object][]} */
const KINDS = [
  ['WhatsApp Web', 'baileys', 'BaileysProvider', { session: 'a' }],
  ['WhatsApp Cloud API', 'meta', 'MetaProvider', { ...page, phoneNumberId: '1' }],
  ['Messenger', 'messenger', 'MessengerProvider', { ...page, pageId: '1' }],
  ['Instagram', 'instagram', 'InstagramProvider', { ...page, accountId: '1' }],
  ['Telegram, long polling', 'telegram', 'TelegramProvider', telegram],
  [
    'Telegram, webhook',
    'telegram',
    'TelegramProvider',
    { ...telegram, webhook: { secret: 'only-to-be-looked-at' } },
  ],
  ['Discord', 'discord', 'DiscordProvider', discord],
  ['E-mail, mailbox', 'email', 'EmailProvider', { address, smtp, imap: smtp }],
  ['E-mail, by `ingest`', 'email', 'EmailProvider', { address, smtp }],
  ['Web chat', 'webchat', 'WebchatProvider', { account: 'a' }],
]

/** @returns {Promise<{ name: string, folder: string, provider: import('@botmesh/core').Provider }[]>} */
export async function transports() {
  const made = []
  for (const [name, folder, kind, options] of KINDS) {
    const Provider = (await import(`@botmesh/${folder}`))[kind]
    made.push({ name, folder, provider: new Provider(options) })
  }
  return made
}

/** @returns {Promise<string>} the whole file */
export async function capabilitiesPage() {
  const rows = (await transports()).map(({ name, folder, provider }) => {
    const {
      exclusiveSession = false,
      receives = [],
      sends = [],
      uncertainSends = 'skip',
    } = provider.capabilities
    return `| [${name}](../libs/${folder}/README.md) | ${exclusiveSession ? 'yes' : 'no'} | ${receives.join(', ')} | ${sends.join(', ')} | ${uncertainSends} |`
  })
  const text = `# What each transport can do

Written by \`node tools/capabilities.mjs\` from what the providers declare (\`provider.capabilities\`); do not edit it.

**Exclusive**: the platform allows one connection an account; one replica leads and is connected, the others stand by.
Where it is not, every replica serves. **Uncertain sends**: what happens with durability to a send whose fate is unknown
after a crash or a lost answer: left alone (\`skip\`) or made again (\`resend\`). What a platform cannot show as buttons or
a list is sent as numbered lines.

| transport | exclusive | receives | sends | uncertain sends |
| --- | --- | --- | --- | --- |
${rows.join('\n')}
`
  return format(text, { ...(await resolveConfig(FILE)), filepath: FILE })
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(FILE, await capabilitiesPage())
}
