/** What tests of the e-mail transport share: mails of made-up people, and a bot on the test's mail system. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { EmailProvider, type EmailOptions } from '@botmesh/email'
import type { MailSystem } from '../../../test/doubles/mail-system.js'

export const ANA = 'ana@example.com'

/** An address, and so a mailbox, that no other test has. */
export function freshAddress(): string {
  return `tienda-${randomBytes(6).toString('hex')}@example.org`
}

export interface MailText {
  id?: string
  from?: string
  to?: string
  subject?: string
  body?: string
  inReplyTo?: string
  references?: string[]
  headers?: Record<string, string>
}

let serial = 0

/** A mail as Ana writes it. */
export function mailOf(mail: MailText = {}): string {
  serial += 1
  const lines = [
    `Message-ID: <${mail.id ?? `m${serial}.${randomBytes(4).toString('hex')}@example.com`}>`,
    `From: ${mail.from ?? `Ana Ríos <${ANA}>`}`,
    `To: ${mail.to ?? 'Tienda <tienda@example.org>'}`,
    `Subject: ${mail.subject ?? 'Pedido'}`,
    'Date: Thu, 01 Jan 2026 10:00:00 +0100',
    ...(mail.inReplyTo === undefined ? [] : [`In-Reply-To: <${mail.inReplyTo}>`]),
    ...(mail.references === undefined
      ? []
      : [`References: ${mail.references.map((one) => `<${one}>`).join(' ')}`]),
    ...Object.entries(mail.headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 8bit',
    '',
    mail.body ?? 'Hola',
  ]
  return `${lines.join('\r\n')}\r\n`
}

/** A bot with a mailbox, which asks its mailbox more often than others do. */
export function mailboxBot(system: MailSystem, options: Partial<EmailOptions> = {}): EmailProvider {
  const address = options.address ?? freshAddress()
  return new EmailProvider({
    address,
    imap: system.imap,
    smtp: system.smtp,
    checkMs: 400,
    answerMs: '3s',
    sendTimeoutMs: '5s',
    ...options,
  })
}

/** Connections that this process has to a port now: as exact as the process itself is. */
export function watchConnections(port: () => number): { open: () => number; stop: () => void } {
  const sockets = new Set<Socket>()
  const onSocket = (message: unknown) => void sockets.add((message as { socket: Socket }).socket)
  subscribe('net.client.socket', onSocket)
  return {
    open: () => [...sockets].filter((one) => !one.destroyed && one.remotePort === port()).length,
    stop: () => unsubscribe('net.client.socket', onSocket),
  }
}
