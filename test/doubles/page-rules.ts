/** What Messenger and Instagram refuse in a message: the limits of their documentation, for the double. */
export interface PageRules {
  text: { most: number; unit: 'characters' | 'bytes' }
}

interface Choice {
  title?: string
  payload?: string
}

interface Message {
  text?: string
  quick_replies?: Choice[]
  attachment?: {
    type?: string
    payload?: { text?: string; buttons?: Choice[]; elements?: { title?: string; buttons?: Choice[] }[] }
  }
}

/** @returns the platform's words of refusal, undefined for a message that is good. */
export function refusalOf(body: Record<string, unknown>, rules: PageRules): string | undefined {
  if (body['sender_action'] !== undefined) {
    return body['message'] === undefined
      ? undefined
      : '(#100) Cannot send both message and state at the same time'
  }
  const { text, attachment, quick_replies: replies = [] } = (body['message'] ?? {}) as Message
  const { payload = {} } = attachment ?? {}
  const size = rules.text.unit === 'bytes' ? Buffer.byteLength(text ?? '') : (text ?? '').length
  const buttons = [payload.buttons ?? [], ...(payload.elements ?? []).map((one) => one.buttons ?? [])]
  const broken: [boolean, string][] = [
    [text === undefined && attachment === undefined, 'Must provide text or attachment'],
    [text === '', 'Length of param message[text] must be greater than or equal to 1'],
    [text !== undefined && attachment !== undefined, 'Cannot send text and attachment at the same time'],
    [
      size > rules.text.most,
      `Length of param message[text] must be less than or equal to ${rules.text.most}`,
    ],
    [replies.length > 13, 'Too many elements for field quick_replies (max 13)'],
    [buttons.some((row) => row.length > 3), 'Too many elements for field buttons (max 3)'],
    [(payload.text ?? '').length > 640, 'Length of param text must be less than or equal to 640'],
    [(payload.elements ?? []).some((one) => (one.title ?? '').length > 80), 'Element title is too long'],
    [
      [...buttons.flat(), ...replies].some((one) => !one.title || one.title.length > 20),
      'Invalid button title',
    ],
    [[...buttons.flat(), ...replies].some((one) => (one.payload ?? '').length > 1000), 'Payload is too long'],
  ]
  const first = broken.find(([is]) => is)
  return first && `(#100) ${first[1]}`
}
