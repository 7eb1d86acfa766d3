/**
 * Z9: the password of the pairing page stays with who knows it: a whole life of the shop as a process that says all it
 * can, with everything that it prints searched for the password, what browsers make of it, and the session's keys.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { doubleRootKey, WhatsAppWebDouble } from '../../../test/doubles/whatsapp-web/index.js'
import { spawnReplica, waitFor, type Replica } from '../../../test/support/index.js'
import { SessionSecrets } from '../../../test/support/whatsapp-session/secrets.js'

const MAIN = new URL('../src/main.ts', import.meta.url)
const TRUST = fileURLToPath(new URL('../../../test/doubles/whatsapp-web/trust-double.mjs', import.meta.url))
const PHONE = '5215550001111'
const newPassword = () => randomBytes(24).toString('base64url')
const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

let whatsapp: WhatsAppWebDouble
let folder: string
let secrets: SessionSecrets
beforeEach(async () => {
  whatsapp = await WhatsAppWebDouble.start()
  folder = await mkdtemp(join(tmpdir(), 'tienda-secrets-'))
  secrets = new SessionSecrets()
})
afterEach(async () => {
  await whatsapp.stop()
  await rm(folder, { recursive: true, force: true })
})

/** A shop at its most talkative. */
function spawn(password: string): { shop: Replica; said: { stdout: string; stderr: string } } {
  const shop = spawnReplica(MAIN, {
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'trace',
    PAIRING_PASSWORD: password,
    WHATSAPP_WEB_SESSION: 'tienda',
    WHATSAPP_WEB_FOLDER: folder,
    WHATSAPP_WEB_PHONE: PHONE,
    WHATSAPP_WEB_URL: whatsapp.url,
    WEBCHAT_SECRET: 'a secret for tests only',
    BOTMESH_TEST_WHATSAPP_ROOT: doubleRootKey(),
    NODE_OPTIONS: `--import=${pathToFileURL(TRUST).href}`,
  })
  return { shop, said: shop.transcript() }
}

interface Answer {
  status: number
  body: string
  headers: object
}

interface Sending {
  method?: string
  body?: string
  headers?: Record<string, string>
}

/** Paths go as they are, broken ones too. */
function ask(
  port: number,
  path: string,
  authorization?: string,
  { method = 'GET', body = '', headers = {} }: Sending = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const all = { ...headers, ...(authorization === undefined ? {} : { authorization }) }
    const call = request({ host: '127.0.0.1', port, path, method, headers: all }, (response) => {
      let text = ''
      response.on('data', (data) => (text += String(data)))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers }),
      )
    })
    call.on('error', reject)
    call.end(body)
  })
}

describe('Z9: the password of the pairing page', () => {
  it('the search finds it however it is written, and part of it', () => {
    const password = newPassword()
    secrets.learnPassword('password', password)
    for (const way of [
      password,
      `at /pairing?password=${password.slice(0, 12)}`,
      Buffer.from(password).toString('hex'),
      Buffer.from(password),
      { cause: new Error(password) },
    ]) {
      expect(secrets.foundIn([way])).toContain('password')
    }
    expect(secrets.foundIn({ headers: { authorization: basic('x', password) } })).toContain('password.header')
    expect(secrets.foundIn(['PAIRING_PASSWORD', 'Basic realm="Tienda Aurora"'])).toEqual([])
  })

  it('is said nowhere, nor is a wrong one: pairing, refusals, broken requests, a lost connection, the end', async () => {
    const [password, wrong] = [newPassword(), newPassword()]
    secrets.learnPassword('password', password)
    secrets.learnPassword('wrong', wrong)
    const { shop, said } = spawn(password)
    const port = Number((await shop.next('listening', { timeoutMs: 30_000 })).port)
    const refused: Answer[] = []
    for (const path of ['/pairing', '/pairing/state', '/pairing/panel.js']) {
      for (const header of [
        undefined,
        basic('x', wrong),
        basic(password, wrong),
        `Bearer ${password}`,
        `Basic ${password}`,
        basic('', password.slice(0, -1)),
      ]) {
        const answer = await ask(port, path, header)
        expect([path, answer.status]).toEqual([path, 401])
        refused.push(answer)
      }
    }
    // What people do by mistake, and what nobody should.
    const known = basic('x', password)
    const json = { 'content-type': 'application/json' }
    const broken = [
      await ask(port, `/pairing?password=${password}`),
      await ask(port, '/pairing', undefined, {
        headers: { cookie: `pairing=${known}; password=${password}` },
      }),
      await ask(port, `/${encodeURIComponent(password)}`, known),
      await ask(port, '/pairing/%E0%A4%A', known),
      await ask(port, '/pairing', known, { method: 'POST', headers: json, body: `{"password":"${password}` }),
      await ask(port, '/pairing', known, { headers: { 'x-large': 'x'.repeat(20_000) } }),
    ]
    expect(broken.map(({ status }) => status)).toEqual([401, 401, 404, 404, 400, 431])
    const page = await ask(port, '/pairing?lang=en', known)
    expect(page.status).toBe(200)
    expect(secrets.foundIn([refused, page])).toEqual([])

    const state = async () => (await ask(port, '/pairing/state?lang=en', known)).body
    await waitFor(async () => (await state()).includes('Type this code'), { what: 'a code on the page' })
    const [, spelt = ''] = /Pairing code: ([A-Z0-9 ]+)/.exec(await state()) ?? []
    const paired = once(whatsapp, 'login')
    await whatsapp.typeCode(spelt.replaceAll(' ', ''), PHONE)
    await paired
    await waitFor(async () => (await state()).includes('is connected'), { what: 'that on the page' })
    const again = once(whatsapp, 'login')
    whatsapp.drop()
    await again
    expect(await shop.terminate()).toEqual({ code: 0, signal: null })
    await learnSession()
    expect(secrets.size).toBeGreaterThan(15)
    // It did say something, at every level, and where requests end up.
    expect(said.stdout).toContain('"level":20')
    expect(secrets.foundIn(said)).toEqual([])
  }, 60_000)

  it('one that is too short is refused by the name of its variable', async () => {
    const password = newPassword().slice(0, 15)
    secrets.learnPassword('password', password)
    const { shop, said } = spawn(password)
    expect(await shop.exited).toEqual({ code: 1, signal: null })
    expect(said.stderr).toContain('PAIRING_PASSWORD is too short; accepted: 16 characters or more.')
    expect(secrets.foundIn(said)).toEqual([])
  }, 30_000)
})

async function learnSession(): Promise<void> {
  for (const name of await readdir(join(folder, 'tienda'))) {
    if (!name.endsWith('.json')) continue
    secrets.learn(name.replace('.json', ''), await readFile(join(folder, 'tienda', name), 'utf8'))
  }
}
