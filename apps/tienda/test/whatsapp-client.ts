/** Customers who write over WhatsApp: bodies as the platform signs them, replies as the double of its API got them. */
import { GraphApiDouble, metaText, metaWebhookBody, signMetaBody } from '../../../test/doubles/graph-api.js'
import { waitFor } from '../../../test/support/index.js'

export const NUMBER = '106540352242922'
export const APP_SECRET = 'app-secret'

let serial = 0

export class WhatsAppClient {
  constructor(readonly graph: GraphApiDouble) {}

  static async listen(): Promise<WhatsAppClient> {
    return new WhatsAppClient(await new GraphApiDouble().listen())
  }

  close(): Promise<void> {
    return this.graph.close()
  }

  get settings() {
    return {
      phoneNumberId: NUMBER,
      accessToken: 'token',
      appSecret: APP_SECRET,
      verifyToken: 'verify',
      graphUrl: this.graph.url,
    }
  }

  /** Delivers a message to a replica. @returns the status of its answer; 0 if it could not be reached. */
  async post(port: number, from: string, text: string, id = newId(from)): Promise<number> {
    const body = metaWebhookBody(NUMBER, [metaText(from, id, text)])
    try {
      const response = await fetch(`http://127.0.0.1:${port}/webhooks/whatsapp`, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json',
          'x-hub-signature-256': signMetaBody(body, APP_SECRET),
        },
      })
      await response.arrayBuffer()
      return response.status
    } catch {
      return 0
    }
  }

  repliesTo(chat: string): string[] {
    return this.graph.sends
      .filter((one) => one.to === chat)
      .map((one) => String((one.body['text'] as { body?: unknown } | undefined)?.body))
  }

  /** Says a line to a replica and waits for so many replies in all. @returns the last of them. */
  async say(port: number, chat: string, line: string, replies: number): Promise<string> {
    const status = await this.post(port, chat, line)
    if (status !== 200) throw new Error(`"${line}" was answered ${status}`)
    await waitFor(() => this.repliesTo(chat).length >= replies, {
      what: `${replies} replies after "${line}"`,
    })
    return this.repliesTo(chat)[replies - 1] ?? ''
  }
}

export function newId(from: string): string {
  return `wamid.${from}.${++serial}`
}
