/**
 * Sends one message over an open socket and waits for WhatsApp's acknowledgement, so that "sent" is a fact: Baileys
 * itself resolves once the bytes are on their way.
 */
import { createHash } from 'node:crypto'
import type { WAMessage } from '@whiskeysockets/baileys'
import { SendError, type OutgoingContent, type SendOptions, type SendTarget, type Sent } from '@botmesh/core'
import type { BaileysClient } from './baileys.client.js'
import { codeOf } from './close-codes.js'
import { jidOf, renderOutbound } from './render-outbound.js'

/** @throws SendError */
export async function sendMessage(
  provider: string,
  client: BaileysClient | undefined,
  ackTimeoutMs: number,
  to: SendTarget,
  content: OutgoingContent,
  options: SendOptions,
): Promise<Sent> {
  const rendered = renderOutbound(provider, content)
  const socket = client?.ready
  if (client === undefined || socket === undefined) {
    throw new SendError('WhatsApp is not connected on this replica at the moment.', {
      provider,
      outcome: 'retryable',
    })
  }
  const jid = jidOf(to.chatId)
  const messageId = messageIdOf(options.idempotencyKey) ?? socket.generateMessageTag()
  const quoted = content.replyTo === undefined ? undefined : quote(client, jid, content.replyTo)
  const acknowledged = socket.waitForMessage<AckStanza>(messageId, ackTimeoutMs)
  // If the send itself fails first, nobody waits for the acknowledgement.
  acknowledged.catch(() => {})
  try {
    const sent = await socket.sendMessage(jid, rendered, { messageId, ...(quoted ? { quoted } : {}) })
    if (sent?.message) client.sent.add(messageId, sent.message)
  } catch (error) {
    throw notSent(provider, error)
  }
  return confirm(provider, messageId, acknowledged)
}

interface AckStanza {
  tag?: string
  attrs?: Record<string, string | undefined>
}

async function confirm(
  provider: string,
  id: string,
  acknowledged: Promise<AckStanza | undefined>,
): Promise<Sent> {
  let ack: AckStanza | undefined
  try {
    ack = await acknowledged
  } catch (error) {
    throw uncertain(provider, 'the connection closed before WhatsApp acknowledged it', error)
  }
  if (ack === undefined) throw uncertain(provider, 'WhatsApp did not acknowledge it in time')
  const refused = ack.tag === 'ack' ? ack.attrs?.['error'] : undefined
  if (refused !== undefined) {
    const outcome = refused === '429' || refused.startsWith('5') ? 'retryable' : 'final'
    throw new SendError(`WhatsApp refused the message (${refused}).`, {
      provider,
      outcome,
      platformCode: refused,
    })
  }
  return { id }
}

/** Baileys encrypts and writes in one call: only what is known to come before the writing is surely not sent. */
function notSent(provider: string, error: unknown): SendError {
  const code = codeOf(error)
  const platformCode = code === undefined ? {} : { platformCode: String(code) }
  if (code === 428 || code === 408) {
    // No connection, or no answer to a question (devices, keys) that precedes the message.
    return new SendError(
      'WhatsApp was not reached, the message was not sent.',
      { provider, outcome: 'retryable', ...platformCode },
      error,
    )
  }
  if (code !== undefined && code >= 400 && code < 500) {
    return new SendError(
      `The message could not be sent (${code}).`,
      { provider, outcome: 'final', ...platformCode },
      error,
    )
  }
  return uncertain(provider, 'sending it failed midway', error)
}

function uncertain(provider: string, why: string, cause?: unknown): SendError {
  return new SendError(
    `Whether the message arrived is unknown: ${why}.`,
    { provider, outcome: 'uncertain' },
    cause,
  )
}

/** The same id for every attempt of one send. */
function messageIdOf(idempotencyKey: string | undefined): string | undefined {
  if (idempotencyKey === undefined) return undefined
  const hash = createHash('sha256').update(idempotencyKey).digest('hex')
  return `3EB0${hash.slice(0, 18).toUpperCase()}`
}

/** The quoted message as received here, or, on a replica that did not see it, a reference without its text. */
function quote(client: BaileysClient, jid: string, id: string): WAMessage {
  return (
    client.received.get(id) ?? { key: { remoteJid: jid, id, fromMe: false }, message: { conversation: '' } }
  )
}
