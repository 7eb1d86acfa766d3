/**
 * A registry that has our packages and nothing else, as if they were published. Applications ask it for the scope
 * `@botmesh` alone (their `.npmrc` says so), everything else comes from wherever npm is set up to go. So a package's
 * own dependencies on its siblings are resolved by name and range, as they will be.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

/** @typedef {import('./packed.mjs').Packed} Packed */

/**
 * @param {readonly Packed[]} packed
 * @returns {Promise<{ url: string, close(): Promise<void> }>}
 */
export async function startRegistry(packed) {
  // npm caches answers by address: one of its own for each run.
  const run = `/${randomBytes(6).toString('hex')}`
  let url = ''
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '').slice(run.length + 1))
    const one = packed.find(({ manifest }) => path === manifest.name || path === `${manifest.name}.tgz`)
    if (!request.url?.startsWith(`${run}/`) || one === undefined) return refuse(response, path)
    if (path.endsWith('.tgz')) return void response.end(readFileSync(one.tarball))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(documentOf(one, url)))
  })
  await new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve(undefined))
  })
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}${run}`
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/**
 * What a registry says of a package with one version.
 * @param {Packed} packed
 * @param {string} url
 */
function documentOf({ manifest, tarball }, url) {
  const { name, version } = manifest
  const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  return {
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist: { tarball: `${url}/${name}.tgz`, integrity } } },
  }
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {string} path
 */
function refuse(response, path) {
  response.writeHead(404, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: `no package ${path} in the workspace` }))
}
