/** The demo's own replay, as its user runs it: it judges by itself whether anything was lost, doubled or out of order. */
import { describe, expect, it } from '@jest/globals'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endWithMe } from '../../tools/servers/reaper.mjs'
import { sharedRedisUrl } from '../support/index.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LOADER = fileURLToPath(new URL('../support/source-loader.mjs', import.meta.url))
const MINUTE = 60_000

async function replay(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number | null; text: string }> {
  const { NODE_OPTIONS: _, ...inherited } = process.env
  const child = spawn(
    process.execPath,
    ['--conditions=@botmesh/source', '--import', LOADER, 'tools/demo/main.ts', '--replay', ...args],
    { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env: { ...inherited, ...env } },
  )
  endWithMe(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += String(data)))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, text })))
}

describe('the demo replays recorded webhook bodies', () => {
  it(
    'T1, D1, scenario 3: over processes, one killed in the middle of an order, one frozen for longer than its lease',
    async () => {
      const { code, text } = await replay(['--lease-ms=2000'], { REDIS_URL: await sharedRedisUrl() })
      expect(text).toContain('was killed in the middle of an order')
      expect(text).toContain('goes on (SIGCONT)')
      expect(text).toContain('Nothing was lost, doubled or out of order.')
      expect(code).toBe(0)
    },
    2 * MINUTE,
  )

  it(
    'X1: without Redis, in one process',
    async () => {
      const { code, text } = await replay(['--in-process', '--lease-ms=2000'], {})
      expect(text).toContain('all in one process')
      expect(text).toContain('Nothing was lost, doubled or out of order.')
      expect(code).toBe(0)
    },
    2 * MINUTE,
  )
})
