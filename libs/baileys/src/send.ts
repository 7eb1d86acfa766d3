/**
 * Sends one message over an open socket and waits for WhatsApp's acknowledgement, so that "sent" is a fact: Baileys
 * itself resolves once the bytes are on their way.
 */
import { createHash } from 'node:crypto'
import type { AnyMessageContent, WAMessage, WAMessageKey } from '@whiskeysockets/baileys'
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
  const rendered = reactionOf(content) === undefined ? renderOutbound(provider, content) : undefined
  const socket = client?.ready
  if (client === undefined || socket === undefined) {
    throw notConnected(provider)
  }
  const jid = jidOf(to.chatId)
  const messageId = messageIdOf(options.idempotencyKey) ?? socket.generateMessageTag()
  const body = rendered ?? reaction(provider, client, jid, to, content)
  const quoted =
    rendered === undefined || content.replyTo === undefined ? undefined : quote(client, jid, content.replyTo)
  const acknowledged = socket.waitForMessage<AckStanza>(messageId, ackTimeoutMs)
  // If the send itself fails first, nobody waits for the acknowledgement.
  acknowledged.catch(() => {})
  try {
    const sent = await socket.sendMessage(jid, body, { messageId, ...(quoted ? { quoted } : {}) })
    if (sent?.message) client.sent.add(messageId, sent.message)
  } catch (error) {
    throw notSent(provider, error)
  }
  return confirm(provider, messageId, acknowledged)
}

export function notConnected(provider: string): SendError {
  return new SendError('WhatsApp is not connected on this replica at the moment.', {
    provider,
    outcome: 'retryable',
  })
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

function reactionOf(content: OutgoingContent): string | undefined {
  const emoji = content.platform?.['reaction']
  return typeof emoji === 'string' ? emoji : undefined
}

/** An emoji on a message of the chat; an empty one takes it back. */
function reaction(
  provider: string,
  client: BaileysClient,
  jid: string,
  to: SendTarget,
  content: OutgoingContent,
): AnyMessageContent {
  const { replyTo } = content
  if (replyTo === undefined) {
    throw new SendError('A reaction needs replyTo: the id of the message that it is for.', {
      provider,
      outcome: 'final',
    })
  }
  return { react: { text: reactionOf(content) ?? '', key: keyOf(client, jid, replyTo, to.participant) } }
}

/** As WhatsApp addressed it, or, on a replica that did not see the message, as far as it is known. */
export function keyOf(client: BaileysClient, jid: string, id: string, participant?: string): WAMessageKey {
  const seen = client.received.get(id)?.key
  if (seen !== undefined) return seen
  const inGroup = jid.endsWith('@g.us') && participant !== undefined ? { participant } : {}
  return { remoteJid: jid, id, fromMe: false, ...inGroup }
}

/** The quoted message as received here, or, on a replica that did not see it, a reference without its text. */
function quote(client: BaileysClient, jid: string, id: string): WAMessage {
  return (
    client.received.get(id) ?? { key: { remoteJid: jid, id, fromMe: false }, message: { conversation: '' } }
  )
}
