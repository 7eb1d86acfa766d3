/** Z9: pairing WhatsApp Web on the demo's page: real application, real client, the double's handshake. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { trustDoubleCertificates, WhatsAppWebDouble } from '../../../test/doubles/whatsapp-web/index.js'
import { waitFor } from '../../../test/support/index.js'
import { createMesh, createShop, settingsFrom, type Shop, type ShopOptions } from '../src/main.js'

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

async function open(options: ShopOptions = {}, pairingPhone?: string): Promise<Shop> {
  const shop = await createShop({
    host: '127.0.0.1',
    logLevel: 'fatal',
    webchatSecret: 'a secret for tests only',
    leaseMs: 1000,
    pairingPassword: PASSWORD,
    whatsappWeb: {
      session: 'tienda',
      folder,
      printQr: false,
      waWebSocketUrl: whatsapp.url,
      ...(pairingPhone === undefined ? {} : { pairingPhone }),
    },
    ...options,
  })
  shops.push(shop)
  return shop
}

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

describe('Z9: the pairing page', () => {
  it('shows the QR code of the leader on every replica, renews it, and says when the phone is paired', async () => {
    const mesh = createMesh()
    const [a, b] = [await open({ mesh, replicaId: 'a' }), await open({ mesh, replicaId: 'b' })]
    const offered: string[] = []
    const { EventEmitter2 } = await import('@nestjs/event-emitter')
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
    const shop = await open({}, PHONE)
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

  it('is closed to whoever does not know the password; nothing of it may be kept or framed', async () => {
    const shop = await open()
    const wrong = { authorization: `Basic ${Buffer.from('x:wrong').toString('base64')}` }
    for (const path of ['', '/state', '/panel.js', '/panel.css']) {
      for (const headers of [{}, wrong, { authorization: 'Bearer x' }]) {
        const answer = await get(shop, path, headers)
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
          401,
          'Basic realm="Tienda Aurora", charset="UTF-8"',
        ])
        expect(await answer.text()).not.toMatch(/svg|Scan|Escanea/)
      }
      expect((await get(shop, path)).status).toBe(200)
    }
    const { headers } = await get(shop)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-security-policy')).toMatch(/script-src 'self'.*frame-ancestors 'none'/)
  })

  it('without a password, or without WhatsApp Web, there is none; a short password is refused', async () => {
    const { pairingPassword: _, ...none } = { pairingPassword: undefined }
    const shop = await createShop({
      ...none,
      host: '127.0.0.1',
      logLevel: 'fatal',
      webchatSecret: 'a secret for tests only',
      whatsappWeb: { session: 'tienda', folder, printQr: false, waWebSocketUrl: whatsapp.url },
    })
    shops.push(shop)
    expect((await get(shop)).status).toBe(404)
    expect(() => settingsFrom({ PAIRING_PASSWORD: 'short' })).toThrow('PAIRING_PASSWORD')
    expect(
      settingsFrom({ WHATSAPP_WEB_SESSION: 's', WHATSAPP_WEB_PHONE: PHONE, PAIRING_PASSWORD: PASSWORD }),
    ).toMatchObject({
      whatsappWeb: { session: 's', pairingPhone: PHONE },
      pairingPassword: PASSWORD,
    })
  })
})
