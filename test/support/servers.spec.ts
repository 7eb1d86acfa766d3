/** How servers are provided: what is given, what is installed, what can be installed, what is missing. */
import { afterAll, describe, expect, it } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../tools/servers/find.mjs'
import { sharedRedisUrl } from './index.js'

const SCRIPT = fileURLToPath(new URL('../../tools/servers.mjs', import.meta.url))
const redisServer = process.env.BOTMESH_REDIS_SERVER ?? findProgram('redis-server') ?? ''

/** A PATH with a shell and `ln`, and nothing else but these. */
const bin = mkdtempSync(join(tmpdir(), 'botmesh-bin-'))
for (const name of ['sh', 'ln']) symlinkSync(findProgram(name) ?? '', join(bin, name))
afterAll(() => rmSync(bin, { recursive: true }))

function provide(env: Record<string, string>, script: string, ...options: string[]) {
  const args = [SCRIPT, '--only=redis', ...options, '--', process.execPath, '-e', script]
  return spawnSync(process.execPath, args, { encoding: 'utf8', env: { PATH: bin, ...env } })
}

const showUrl = 'console.log(process.env.BOTMESH_REDIS_URL, process.env.BOTMESH_REDIS_SERVER)'
/** A package manager that `installs` by a link. */
const aptGet = (text: string) => {
  writeFileSync(join(bin, 'apt-get'), `#!/bin/sh\n${text}\n`)
  chmodSync(join(bin, 'apt-get'), 0o755)
}

describe('servers', () => {
  it('missing ones are listed with the ways to get them, and nothing is run', () => {
    const { status, stdout, stderr } = provide({}, 'console.log("ran")')
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/redis-server\n.*apt-get install redis-server redis-tools/)
    expect(stderr).toContain('REDIS_URL')
  })

  it('a failing package manager is reported with its own words', () => {
    aptGet('echo "no network here"; exit 100')
    const sudo = join(bin, 'sudo')
    writeFileSync(sudo, '#!/bin/sh\nshift\nexec "$@"\n')
    chmodSync(sudo, 0o755)
    const { status, stderr } = provide({}, showUrl, '--yes')
    expect(status).toBe(1)
    expect(stderr).toMatch(/Installing them failed: .*apt-get.*update: exit code 100\nno network here/)
  })

  it('installs what is missing, runs the command on a private instance and ends that', async () => {
    aptGet(`case "$*" in *install*) ln -s ${redisServer} ${join(bin, 'redis-server')};; esac`)
    const { status, stdout, stderr } = provide({}, `${showUrl}; process.exitCode = 3`, '--yes')
    expect(stderr).toContain('private instance')
    expect(status).toBe(3)
    const [url = '', program] = stdout.trim().split(' ')
    expect(program).toBe(join(bin, 'redis-server'))
    await expect(fetch(url.replace('redis:', 'http:'))).rejects.toHaveProperty('cause.code', 'ECONNREFUSED')
  })

  it('takes the address that is given', async () => {
    expect(existsSync(join(bin, 'redis-server'))).toBe(true)
    const url = await sharedRedisUrl()
    const { status, stdout } = provide({ REDIS_URL: url }, showUrl)
    expect({ status, url: stdout.split(' ')[0] }).toEqual({ status: 0, url })
  })
})
