/** Draws a QR code on standard output, for whoever starts the bot in a terminal. */
import { toString } from 'qrcode'

export async function printQrCode(session: string, value: string): Promise<void> {
  const drawn = await toString(value, { type: 'terminal', small: true })
  process.stdout.write(
    `WhatsApp session "${session}": scan with the phone (Settings, Linked devices)\n${drawn}\n`,
  )
}
