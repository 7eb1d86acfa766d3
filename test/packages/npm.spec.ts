/** A registry that is not there is named as such: no fault of a package, and no reason to pass. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'
import { freePort } from '../support/index.js'
import { explain, npmInstall } from './support/npm.js'

it('says that the registry cannot be reached, when nobody answers there', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'botmesh-npm-'))
  try {
    writeFileSync(join(dir, 'package.json'), '{"name":"app","private":true}')
    const closed = `http://127.0.0.1:${await freePort()}/`
    writeFileSync(join(dir, '.npmrc'), `@somebody:registry=${closed}\ncache=${join(dir, 'cache')}\n`)
    await expect(npmInstall(dir, ['@somebody/something'])).rejects.toThrow(
      /The npm registry cannot be reached \(ECONNREFUSED\).*\nnpm install @somebody\/something:/s,
    )
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

it('leaves what npm says of a package as it is', () => {
  expect(explain(['@botmesh/core'], 'npm error code ERESOLVE')).toBe(
    'npm install @botmesh/core failed:\nnpm error code ERESOLVE',
  )
  expect(explain(['x'], 'npm error code E404')).not.toContain('registry cannot be reached')
  expect(explain(['x'], 'request failed: getaddrinfo EAI_AGAIN host')).toContain('(EAI_AGAIN)')
})
