/** The two platforms' side of the replay: doubles of their APIs, and the posting of webhooks as they do it. */
import { setTimeout as pause } from 'node:timers/promises'
import { GraphApiDouble, signMetaBody } from '../../../test/doubles/graph-api.js'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import type { Delivery } from './story.js'

const SECRETS = {
  appSecret: 'demo-app-secret',
  verifyToken: 'demo-verify-token',
  accessToken: 'demo-access-token',
  webhookSecret: 'demo-webhook-secret',
}
const PHONE_NUMBER_ID = '106540352242922'
const TELEGRAM_TOKEN = '7000000001:demo-token-of-the-local-double'
/** As platforms do: what was not acknowledged is delivered again. */
const AGAIN_AFTER_MS = 300
const ATTEMPTS = 60

export interface Reply {
  chat: string
  text: string
}

export class Platforms {
  private readonly graph = new GraphApiDouble({ accessToken: SECRETS.accessToken })
  private readonly telegram = new TelegramApiDouble({ token: TELEGRAM_TOKEN })
  /** Deliveries that were made again because no 200 came. */
  redelivered = 0

  async listen(): Promise<void> {
    await Promise.all([this.graph.listen(), this.telegram.listen()])
  }

  /** Environment of replicas that use these platforms. */
  get env(): Record<string, string> {
    return {
      WHATSAPP_PHONE_NUMBER_ID: PHONE_NUMBER_ID,
      WHATSAPP_ACCESS_TOKEN: SECRETS.accessToken,
      WHATSAPP_APP_SECRET: SECRETS.appSecret,
      WHATSAPP_VERIFY_TOKEN: SECRETS.verifyToken,
      WHATSAPP_GRAPH_URL: this.graph.url,
      TELEGRAM_TOKEN,
      TELEGRAM_WEBHOOK_SECRET: SECRETS.webhookSecret,
      TELEGRAM_API_ROOT: this.telegram.url,
    }
  }

  /** Everything that people were told, in the order in which their platform took it. */
  replies(): Reply[] {
    const whatsapp = this.graph.sends.map(({ to, body }) => ({ chat: to, text: JSON.stringify(body) }))
    const telegram = this.telegram.sent.map(({ payload }) => ({
      chat: String(payload.chat_id),
      text: JSON.stringify(payload),
    }))
    return [...whatsapp, ...telegram]
  }

  repliesOf(chat: string): string[] {
    return this.replies()
      .filter((reply) => reply.chat === chat)
      .map(({ text }) => text)
  }

  /** Resolves when some replica has acknowledged it; delivers again until one does. */
  async deliver(url: string, delivery: Delivery): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      if (await this.post(url, delivery)) return
      if (attempt === ATTEMPTS)
        throw new Error(`No replica acknowledged a ${delivery.platform} webhook in ${ATTEMPTS} attempts.`)
      this.redelivered++
      await pause(AGAIN_AFTER_MS)
    }
  }

  private async post(url: string, { platform, body }: Delivery): Promise<boolean> {
    const headers: Record<string, string> =
      platform === 'whatsapp'
        ? { 'x-hub-signature-256': signMetaBody(body, SECRETS.appSecret) }
        : { 'x-telegram-bot-api-secret-token': SECRETS.webhookSecret }
    try {
      const reply = await fetch(`${url}/webhooks/${platform}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      })
      await reply.arrayBuffer()
      return reply.ok
    } catch {
      return false // Not acknowledged: delivered again.
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.graph.close(), this.telegram.close()])
  }
}
