/** The rules that every transport keeps, checked on e-mail in both modes against Dovecot and a real SMTP server. */
import { beforeAll, describe, expect, it } from '@jest/globals'
import type { WebhookRequest } from '@botmesh/core'
import { providerSuite, type ProviderBed } from '@botmesh/core/testing'
import { EmailProvider, readMail } from '@botmesh/email'
import { MailSystem } from '../../../test/doubles/mail-system.js'
import { MAIL_PASSWORD, startFaultProxy } from '../../../test/support/index.js'
import { ANA, freshAddress, mailOf, mailboxBot, watchConnections } from './mails.js'

const SECRET = 'a-secret-of-the-webhook'
let system: MailSystem

beforeAll(async () => {
  system = await MailSystem.start()
})

/** What both modes have in common: who writes, and what reached them. */
function userSide(
  address: string,
): Pick<ProviderBed, 'received' | 'refuseNextSend' | 'loseNextAnswer'> & { write: (body: string) => string } {
  const root = `root.${address}`
  let written = 0
  const seenBefore = system.sent.length
  return {
    // One thread: the first mail begins it, the others name it.
    write: (body) =>
      mailOf({
        id: written++ === 0 ? root : `${written}.${address}`,
        body,
        ...(written > 1 ? { references: [root] } : {}),
      }),
    received: () => system.sent.slice(seenBefore).map(({ raw }) => raw.split('\r\n\r\n')[1]!.trim()),
    refuseNextSend: () => system.failNext({ kind: 'recipient', code: 550, text: 'No such user here' }),
    loseNextAnswer: () => system.failNext({ kind: 'lost-answer' }),
  }
}

const COMMON = { refusesSends: true, redelivers: true, losesAnswers: true }

providerSuite(
  { describe, it, expect },
  {
    name: 'E-mail from a mailbox',
    guarantees: { ...COMMON, connects: true, reconnects: true, refusesCredentials: true },
    bed: async () => {
      const address = freshAddress()
      const { write, ...user } = userSide(address)
      const proxy = await startFaultProxy({ to: { port: system.dovecot.port } })
      const connections = watchConnections(() => proxy.port)
      const imap = { ...system.imap, port: proxy.port }
      const wrong = 'not-the-password'
      return {
        ...user,
        provider: mailboxBot(system, { address, imap }),
        refused: () => mailboxBot(system, { address, imap: { ...imap, password: wrong } }),
        outage: () => {
          proxy.cut()
          return () => proxy.heal()
        },
        secrets: [wrong, MAIL_PASSWORD, system.smtp.password],
        connections: connections.open,
        userWrites: (body) => system.deliver(address, write(body)),
        close: async () => {
          connections.stop()
          await proxy.stop()
        },
      }
    },
  },
)

function post(body: string | Buffer, headers: Record<string, string> = {}): WebhookRequest {
  return {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'message/rfc822', ...headers },
    query: {},
    rawBody: Buffer.from(body),
  }
}

providerSuite(
  { describe, it, expect },
  {
    name: 'E-mail by webhook',
    guarantees: { ...COMMON, connects: false, webhook: true },
    bed: async () => {
      const address = freshAddress()
      const provider = new EmailProvider({
        address,
        smtp: system.smtp,
        webhook: { secret: SECRET },
        maxMessageBytes: 8192,
      })
      const { write, ...user } = userSide(address)
      let closed = false
      let delivered: Promise<unknown> = Promise.resolve()
      /** As a service does: one mail after the other, again and again until it is taken. */
      const deliver = async (request: WebhookRequest) => {
        while (!closed && (await provider.handle!(request)).status !== 200) {
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      const json = { 'content-type': 'application/json' }
      return {
        ...user,
        provider,
        connections: () => 0,
        userWrites: async (body) => {
          const request = post(write(body))
          delivered = delivered.then(() => deliver(request))
        },
        requests: {
          unsigned: () => post(mailOf(), { authorization: '' }),
          notJson: () => post('{', json),
          tooLarge: () => post(' '.repeat(20_000)),
          unknownEvent: () => post('{"Type":"SubscriptionConfirmation"}', json),
          good: () => post(mailOf()),
        },
        close: async () => {
          closed = true
          await delivered
        },
      }
    },
  },
)

describe('E-mail between the two', () => {
  it('B4: what one bot sends another can read: text and headers survive', async () => {
    const provider = mailboxBot(system)
    await provider.send({ chatId: ANA }, { text: 'Buenos días, ¿qué tal? €' })
    const mail = await readMail(Buffer.from(system.sent.at(-1)!.raw))
    expect(mail).toMatchObject({
      text: 'Buenos días, ¿qué tal? €\n',
      subject: provider.id.slice('email:'.length),
    })
  })
})
