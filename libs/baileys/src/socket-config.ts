/** What Baileys is told when a socket is made, and what follows from it. */
import type { WAMessage } from '@whiskeysockets/baileys'
import type { AcceptGate } from './accept-gate.js'
import type { AuthState } from './auth-state.js'
import type { Library } from './library.js'
import type { CheckedOptions } from './options.js'
import type { RecentMessages } from './recent-messages.js'

/** @param sent for recipients who could not decrypt what they got. */
export function socketConfig(
  library: Library,
  { logger, waWebSocketUrl, socketOptions }: CheckedOptions,
  gate: AcceptGate,
  auth: AuthState,
  sent: RecentMessages<NonNullable<WAMessage['message']>>,
): Parameters<Library['makeWASocket']>[0] {
  const { makeSignalRepository } = { ...library.DEFAULT_CONNECTION_CONFIG, ...socketOptions }
  return {
    logger,
    // History is not for a bot; Baileys needs the short one for the hidden ids in it.
    syncFullHistory: false,
    markOnlineOnConnect: false,
    // A failed write of keys: its own default holds everything up for half a minute.
    transactionOpts: { maxCommitRetries: 3, delayBetweenTriesMs: 200 },
    getMessage: async (key) => (key.id ? sent.get(key.id) : undefined),
    ...(waWebSocketUrl === undefined ? {} : { waWebSocketUrl }),
    ...socketOptions,
    makeSignalRepository: gate.repository(makeSignalRepository),
    auth: auth.state,
  }
}

/** Whether Baileys drops a chat's messages, as it decides that before it looks at anything else of them. */
export function isIgnored(library: Library, { socketOptions }: CheckedOptions, chatId: string): boolean {
  const { shouldIgnoreJid } = { ...library.DEFAULT_CONNECTION_CONFIG, ...socketOptions }
  return chatId !== '' && chatId !== library.S_WHATSAPP_NET && shouldIgnoreJid(chatId) === true
}
