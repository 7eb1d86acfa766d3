/** Serves the chat page and its two files, free of any framework. Everything else is not its business. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { PageRequest, PageResponse } from '@botmesh/core'
import type { CheckedOptions } from './options.js'

interface Asset {
  body: string
  type: string
  etag: string
}

/** `page/` stands beside `src/` and `dist/`. */
const FOLDER = new URL('../page/', import.meta.url)
const FILES: Record<string, [file: string, type: string]> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/chat.css': ['chat.css', 'text/css; charset=utf-8'],
  '/chat.js': ['chat.js', 'text/javascript; charset=utf-8'],
  '/view.js': ['view.js', 'text/javascript; charset=utf-8'],
  '/socket.js': ['socket.js', 'text/javascript; charset=utf-8'],
  '/upload.js': ['upload.js', 'text/javascript; charset=utf-8'],
  '/texts.js': ['texts.js', 'text/javascript; charset=utf-8'],
}

export class PageServer {
  private readonly assets = new Map<string, Asset>()
  private readonly security: Record<string, string>

  constructor(private readonly options: Pick<CheckedOptions, 'path' | 'title' | 'frameAncestors'>) {
    const ancestors = ["'self'", ...options.frameAncestors].join(' ')
    this.security = {
      'content-security-policy': [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self' ws: wss:",
        "img-src 'self' https: http: data:",
        'media-src https: http: data:',
        "base-uri 'none'",
        "form-action 'none'",
        `frame-ancestors ${ancestors}`,
      ].join('; '),
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    }
  }

  /** @returns null for a request that is not for this page. */
  answer(request: PageRequest): PageResponse | null {
    const [path = '', query] = request.path.split('?', 2)
    if (path !== this.options.path && !path.startsWith(`${this.options.path}/`)) return null
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return { status: 405, headers: { allow: 'GET, HEAD' }, body: '' }
    }
    if (path === this.options.path) {
      // Relative, so that it also holds behind a proxy that takes a prefix away.
      const name = path.slice(path.lastIndexOf('/') + 1)
      return {
        status: 308,
        headers: { location: `./${name}/${query === undefined ? '' : `?${query}`}` },
        body: '',
      }
    }
    const asset = this.asset(path.slice(this.options.path.length))
    if (asset === null) return { status: 404, headers: { 'content-type': 'text/plain' }, body: 'Not found' }
    const headers = { ...this.security, etag: asset.etag, 'cache-control': 'no-cache' }
    if (request.headers?.['if-none-match'] === asset.etag) return { status: 304, headers, body: '' }
    return { status: 200, headers: { ...headers, 'content-type': asset.type }, body: asset.body }
  }

  private asset(path: string): Asset | null {
    const cached = this.assets.get(path)
    if (cached !== undefined) return cached
    const file = Object.hasOwn(FILES, path) ? FILES[path] : undefined
    if (file === undefined) return null
    const body = readFileSync(new URL(file[0], FOLDER), 'utf8').replaceAll('{{title}}', () =>
      escapeHtml(this.options.title),
    )
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    const asset = { body, type: file[1], etag }
    this.assets.set(path, asset)
    return asset
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
