/**
 * Chat keys: `<provider.id>/<chatId>[/<participant>]`, each part percent-encoded, so that no part can contain the
 * separator. In groups the key is per participant, as the conversation's scope is (B4).
 */
export interface ChatAddress {
  provider: string
  chatId: string
  participant?: string
}

export function chatKeyOf(address: ChatAddress): string {
  const chat = `${chatKeyPrefix(address.provider)}${encodeURIComponent(address.chatId)}`
  return address.participant === undefined ? chat : `${chat}/${encodeURIComponent(address.participant)}`
}

/** What the keys of all chats of a provider begin with. */
export function chatKeyPrefix(provider: string): string {
  return `${encodeURIComponent(provider)}/`
}

/** @returns null if `key` was not made by `chatKeyOf`. */
export function parseChatKey(key: string): ChatAddress | null {
  const [provider, chatId, participant, ...rest] = key.split('/')
  if (provider === undefined || chatId === undefined || rest.length > 0) return null
  try {
    const address: ChatAddress = {
      provider: decodeURIComponent(provider),
      chatId: decodeURIComponent(chatId),
    }
    if (participant !== undefined) address.participant = decodeURIComponent(participant)
    return address
  } catch {
    return null
  }
}
