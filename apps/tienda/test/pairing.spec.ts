/** Z9: pairing WhatsApp Web on the demo's page: real application, real client, the double's handshake. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { EventEmitter2 } from '@nestjs/event-emitter'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { trustDoubleCertificates, WhatsAppWebDouble } from '../../../test/doubles/whatsapp-web/index.js'
import { waitFor } from '../../../test/support/index.js'
import { createMesh, createShop, settingsFrom, type Shop, type ShopOptions } from '../src/main.js'
import { pageOf, panelOf } from '../src/pairing/pairing-page.js'
import { pairingTexts } from '../src/pairing/pairing-texts.js'

trustDoubleCertificates()

const PHONE = '5215550001111'
const PASSWORD = 'a password for tests only'
const KNOWN = { authorization: `Basic ${Buffer.from(`x:${PASSWORD}`).toString('base64')}` }

let whatsapp: WhatsAppWebDouble
let folder: string
const shops: Shop[] = []
beforeEach(async () => {
  whatsapp = await WhatsAppWebDouble.start()
  folder = await mkdtemp(join(tmpdir(), 'tienda-pairing-'))
})
afterEach(async () => {
  await Promise.all(shops.splice(0).map((shop) => shop.close()))
  await whatsapp.stop()
  await rm(folder, { recursive: true, force: true })
})

const web = () => ({ session: 'tienda', folder, printQr: false, waWebSocketUrl: whatsapp.url })

/** A shop without a pairing page, unless the options say more. */
async function openBare(options: ShopOptions = {}): Promise<Shop> {
  const shop = await createShop({
    host: '127.0.0.1',
    logLevel: 'fatal',
    webchatSecret: 'a secret for tests only',
    leaseMs: 1000,
    ...options,
  })
  shops.push(shop)
  return shop
}

const open = (options: ShopOptions = {}, more: { pairingPhone?: string } = {}) =>
  openBare({ pairingPassword: PASSWORD, whatsappWeb: { ...web(), ...more }, ...options })

const get = (shop: Shop, path = '', headers: Record<string, string> = KNOWN) =>
  fetch(`http://127.0.0.1:${shop.port}/pairing${path}`, { headers })

interface Panel {
  key: string
  status: string
  html: string
}
const panel = async (shop: Shop) => (await (await get(shop, '/state?lang=en')).json()) as Panel

async function panelWith(shop: Shop, text: RegExp): Promise<Panel> {
  let found = await panel(shop)
  await waitFor(async () => text.test((found = await panel(shop)).status), {
    what: `"${String(text)}" on the page`,
  })
  return found
}

const TYPES: Record<string, string> = {
  '': 'text/html; charset=utf-8',
  '/state': 'application/json; charset=utf-8',
  '/panel.js': 'text/javascript; charset=utf-8',
  '/panel.css': 'text/css; charset=utf-8',
}

function expectGuarded({ headers }: Response): void {
  expect(Object.fromEntries(headers)).toMatchObject({
    'cache-control': 'no-store',
    'content-security-policy': expect.stringMatching(/script-src 'self'.*frame-ancestors 'none'/),
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  })
}

describe('Z9: the pairing page', () => {
  it('shows the QR code of the leader on every replica, renews it, and says when the phone is paired', async () => {
    const mesh = createMesh()
    const [a, b] = [await open({ mesh, replicaId: 'a' }), await open({ mesh, replicaId: 'b' })]
    const offered: string[] = []
    for (const { app } of [a, b])
      app.get(EventEmitter2).on('provider:pairing', ({ value }: { value: string }) => offered.push(value))
    const [first, same] = [await panelWith(a, /Scan this QR code/), await panelWith(b, /Scan this QR code/)]
    expect(same).toEqual(first)
    expect(first.html).toMatch(
      /^<img src="data:image\/svg\+xml;base64,[^"]+" alt="QR code that pairs [^"]+" \/>$/,
    )
    // The connection breaks: the next one has another code, and the page has it.
    whatsapp.drop()
    await waitFor(() => offered.length > 0, { what: 'another code' })
    await waitFor(async () => (await panel(b)).html !== first.html, { what: 'it on the page' })
    await panelWith(b, /Scan this QR code/)
    whatsapp.scan(offered.at(-1) ?? '', PHONE)
    for (const shop of [a, b]) expect((await panelWith(shop, /is connected/)).html).toBe('')
    expect(whatsapp.mostLoggedIn).toBe(1)
  })

  it('shows a code to type, which can be read without seeing it, in Spanish and English', async () => {
    const shop = await open({}, { pairingPhone: PHONE })
    const { html } = await panelWith(shop, /Type this code/)
    const [, spelt = ''] = /aria-label="Pairing code: ([A-Z0-9 ]+)"/.exec(html) ?? []
    const code = spelt.replaceAll(' ', '')
    expect(html).toContain(`>${code.slice(0, 4)}-${code.slice(4)}<`)
    const page = async (path: string, language: string) =>
      (await get(shop, path, { ...KNOWN, 'accept-language': language })).text()
    for (const text of [await page('', 'es-MX,en;q=0.5'), await page('?lang=es', 'en')]) {
      expect(text).toContain('<html lang="es">')
      expect(text).toContain('Escribe este código en el teléfono')
      expect(text).toContain(`aria-label="Código de vinculación: ${spelt}"`)
    }
    const english = await page('', 'en-GB')
    expect(english).toMatch(/<p id="status" role="status" aria-live="polite">Type this code/)
    const login = once(whatsapp, 'login')
    await whatsapp.typeCode(code, PHONE)
    await login
    await panelWith(shop, /is connected/)
  })

  it('forgets the code of a leader that stops: the next one shows its own', async () => {
    const mesh = createMesh()
    const a = await open({ mesh, replicaId: 'a' })
    const first = await panelWith(a, /Scan this QR code/)
    const b = await open({ mesh, replicaId: 'b' })
    expect(await panel(b)).toEqual(first)
    await a.close()
    await waitFor(async () => (await panel(b)).key !== first.key, { what: 'the end of that code' })
    expect((await panelWith(b, /Scan this QR code/)).html).not.toBe(first.html)
  })

  it('says why WhatsApp has closed the connection for good, and never as a part of the page', async () => {
    const mesh = createMesh()
    const [a, b] = [await open({ mesh, replicaId: 'a' }), await open({ mesh, replicaId: 'b' })]
    await panelWith(a, /Scan this QR code/)
    whatsapp.streamError(440)
    for (const shop of [a, b]) {
      expect(await panelWith(shop, /has closed the connection/)).toMatchObject({
        status: 'WhatsApp has closed the connection and it is not tried again (replaced). See the log.',
        html: '',
      })
    }
    const texts = pairingTexts('en')
    const reason = `<img src=x onerror="alert('1')">&`
    const page = pageOf('en', texts, await panelOf({ kind: 'closed', reason }, texts))
    expect(page).toContain('(&#60;img src=x onerror=&#34;alert(&#39;1&#39;)&#34;&#62;&#38;)')
    expect(page).not.toContain('<img')
  })

  it('is closed to whoever does not know the password; nothing of it may be kept, framed or guessed at', async () => {
    const shop = await open()
    const wrong = { authorization: `Basic ${Buffer.from('x:wrong').toString('base64')}` }
    for (const path of ['', '/state', '/panel.js', '/panel.css']) {
      for (const headers of [{}, wrong, { authorization: 'Bearer x' }]) {
        const answer = await get(shop, path, headers)
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
          401,
          'Basic realm="Tienda Aurora", charset="UTF-8"',
        ])
        expectGuarded(answer)
        expect(await answer.text()).not.toMatch(/svg|Scan|Escanea/)
      }
      const answer = await get(shop, path)
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 200, TYPES[path]])
      expectGuarded(answer)
      await answer.text()
    }
  })

  it('without a password, or without WhatsApp Web, there is none', async () => {
    for (const shop of [await openBare({ whatsappWeb: web() }), await openBare()]) {
      for (const path of ['', '/state', '/panel.js', '/panel.css']) {
        expect((await get(shop, path)).status).toBe(404)
      }
    }
  })

  it('a short password is refused, and one for a page that is not there, by option and by variable', async () => {
    const short = {
      details: { option: 'pairingPassword' },
      message: expect.stringMatching(/too short.*16 characters/),
    }
    await expect(open({ pairingPassword: PASSWORD.slice(0, 15) })).rejects.toMatchObject(short)
    await expect(open({ pairingPassword: '' })).rejects.toMatchObject(short)
    await expect(openBare({ pairingPassword: PASSWORD })).rejects.toMatchObject({
      details: { option: 'whatsappWeb' },
      message: expect.stringMatching(/nothing to pair: whatsappWeb is missing/),
    })
    const env = { WHATSAPP_WEB_SESSION: 's', WHATSAPP_WEB_PHONE: PHONE, WHATSAPP_WEB_URL: 'ws://x' }
    expect(() => settingsFrom({ ...env, PAIRING_PASSWORD: 'short' })).toThrow('PAIRING_PASSWORD is too short')
    expect(() => settingsFrom({ PAIRING_PASSWORD: PASSWORD })).toThrow('WHATSAPP_WEB_SESSION is missing')
    expect(settingsFrom({ ...env, PAIRING_PASSWORD: PASSWORD })).toMatchObject({
      whatsappWeb: { session: 's', pairingPhone: PHONE, waWebSocketUrl: 'ws://x' },
      pairingPassword: PASSWORD,
    })
  })
})
