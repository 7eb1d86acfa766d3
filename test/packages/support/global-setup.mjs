/** Before all: packs the packages once and serves them; tests find what they need in the environment. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pack } from './packed.mjs'
import { startRegistry } from './registry.mjs'

/** @type {() => Promise<void>} */
export let end = () => Promise.resolve()

export default async function setup() {
  const dir = mkdtempSync(join(tmpdir(), 'botmesh-packages-'))
  const packed = await pack(dir)
  const registry = await startRegistry(packed)
  process.env.BOTMESH_PACKED = JSON.stringify({ url: registry.url, packed })
  end = async () => {
    await registry.close()
    rmSync(dir, { recursive: true, force: true })
  }
}
