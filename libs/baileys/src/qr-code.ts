/** Shows what pairs the bot on standard output, for whoever starts it in a terminal. */
import { toString } from 'qrcode'

export async function printQrCode(session: string, value: string): Promise<void> {
  const drawn = await toString(value, { type: 'terminal', small: true })
  process.stdout.write(
    `WhatsApp session "${session}": scan with the phone (Settings, Linked devices)\n${drawn}\n`,
  )
}

export function printPairingCode(session: string, value: string): void {
  const code = `${value.slice(0, 4)}-${value.slice(4)}`
  process.stdout.write(
    `WhatsApp session "${session}": on the phone (Settings, Linked devices, Link with phone number) type ${code}\n`,
  )
}
