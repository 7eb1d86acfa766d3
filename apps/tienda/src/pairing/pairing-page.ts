/**
 * The pairing page: one line that says what to do, announced by screen readers when it changes, and under it the QR
 * code or the code. Nothing is told by colour alone, and the QR code keeps its white ground in a dark scheme.
 */
import { createHash } from 'node:crypto'
import { toString } from 'qrcode'
import type { Language } from '../texts.js'
import type { Pairing } from './pairing-board.js'
import type { PairingTexts } from './pairing-texts.js'

/** What the page shows at the moment; `key` changes with it. */
export interface Panel {
  key: string
  status: string
  /** Safe to put into the page. */
  html: string
}

export async function panelOf(pairing: Pairing, texts: PairingTexts): Promise<Panel> {
  const { status, html } = await contentOf(pairing, texts)
  const key = createHash('sha256').update(status).update(html).digest('base64url').slice(0, 16)
  return { key, status, html }
}

async function contentOf(pairing: Pairing, texts: PairingTexts): Promise<Omit<Panel, 'key'>> {
  switch (pairing.kind) {
    case 'qr': {
      const svg = await toString(pairing.value, { type: 'svg', margin: 4 })
      const source = `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
      return { status: texts.qr, html: `<img src="${source}" alt="${escape(texts.qrAlt)}" />` }
    }
    case 'code': {
      const { value } = pairing
      const label = texts.codeLabel(value.split('').join(' '))
      const shown = `${value.slice(0, 4)}-${value.slice(4)}`
      return {
        status: texts.code,
        html: `<p class="code" role="img" aria-label="${escape(label)}">${escape(shown)}</p>`,
      }
    }
    case 'closed':
      return { status: texts.closed(pairing.reason), html: '' }
    case 'connected':
      return { status: texts.connected, html: '' }
    case 'connecting':
      return { status: texts.connecting, html: '' }
  }
}

export function pageOf(language: Language, texts: PairingTexts, panel: Panel): string {
  return `<!doctype html>
<html lang="${language}">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${escape(texts.title)} · Tienda Aurora</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="/pairing/panel.css" />
    <script type="module" src="/pairing/panel.js"></script>
    <noscript><meta http-equiv="refresh" content="5" /></noscript>
  </head>
  <body>
    <main>
      <h1>${escape(texts.title)}</h1>
      <p id="status" role="status" aria-live="polite">${escape(panel.status)}</p>
      <div id="panel" data-key="${panel.key}" data-unreachable="${escape(texts.unreachable)}">${panel.html}</div>
      <nav><a href="?lang=es" lang="es">Español</a> · <a href="?lang=en" lang="en">English</a></nav>
    </main>
  </body>
</html>
`
}

/** Asks every two seconds; a page that nobody looks at asks again once it is looked at. */
export const PANEL_SCRIPT = `const panel = document.getElementById('panel')
const line = document.getElementById('status')
const address = '/pairing/state?lang=' + document.documentElement.lang
const say = (text) => { if (line.textContent !== text) line.textContent = text }
async function ask() {
  if (document.hidden) return
  try {
    const answer = await fetch(address, { cache: 'no-store' })
    if (!answer.ok) throw new Error(String(answer.status))
    const { key, status, html } = await answer.json()
    say(status)
    if (panel.dataset.key === key) return
    panel.dataset.key = key
    panel.innerHTML = html
  } catch {
    say(panel.dataset.unreachable)
  }
}
setInterval(ask, 2000)
document.addEventListener('visibilitychange', ask)
`

export const PANEL_STYLE = `:root { color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif; }
body { margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 40rem; margin: 0 auto; padding: 1rem; }
img { width: min(100%, 24rem); background: #fff; border: 1px solid CanvasText; }
.code { font: 700 2.5rem/1.2 ui-monospace, monospace; letter-spacing: 0.1em; }
a { color: LinkText; }
`

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
