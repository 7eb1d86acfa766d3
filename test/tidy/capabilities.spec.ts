/** docs/capabilities.md says what the providers declare, and each declares what it does. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { FILE, capabilitiesPage, transports } from '../../tools/capabilities.mjs'

describe('capabilities', () => {
  it('P2: docs/capabilities.md is what `node tools/capabilities.mjs` writes', async () => {
    expect(readFileSync(FILE, 'utf8')).toBe(await capabilitiesPage())
  })

  it('P2: every transport declares what it receives and sends, buttons and media in one voice', async () => {
    for (const { name, provider } of await transports()) {
      const { receives = [], sends = [], buttons = false, media = false } = provider.capabilities
      expect([name, receives.includes('text'), sends.includes('text')]).toEqual([name, true, true])
      expect([name, sends.includes('buttons'), sends.includes('media')]).toEqual([name, buttons, media])
    }
  })
})
