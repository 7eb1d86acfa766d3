/**
 * One replica of the shop as a process. Tells launchers, as one JSON line, that it listens; logs are JSON lines too.
 * The launcher of several replicas in one process imports `createShop` and `createMesh` from here.
 */
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createShop } from './create-shop.js'
import { settingsFrom } from './settings.js'

export { createMesh, createShop, type Shop } from './create-shop.js'
export { settingsFrom, type InProcessMesh, type ShopOptions } from './settings.js'

const script = process.argv[1]
if (script !== undefined && realpathSync(script) === fileURLToPath(import.meta.url)) {
  try {
    const { port, replicaId } = await createShop(settingsFrom(process.env))
    process.stdout.write(
      `${JSON.stringify({ event: 'listening', port, replica: replicaId, pid: process.pid })}\n`,
    )
    // For launchers that wait for it, such as PM2.
    process.send?.('ready')
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
