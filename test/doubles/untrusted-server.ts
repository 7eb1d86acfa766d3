/** An HTTPS server that answers anything, whose certificate nobody trusts: it is of its own making. Needs `openssl`. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export class UntrustedServer {
  /** Requests that it saw: none, if its callers are careful. */
  requests = 0

  private constructor(private readonly server: Server) {}

  static async listen(): Promise<UntrustedServer> {
    const server = createServer(certificate(), (_request, response) => {
      made.requests += 1
      response.end('{}')
    })
    const made = new UntrustedServer(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return made
  }

  get url(): string {
    return `https://localhost:${(this.server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

function certificate(): { cert: Buffer; key: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'botmesh-certificate-'))
  try {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const plain = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    execFileSync('openssl', ['req', ...plain, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    return { cert: readFileSync(cert), key: readFileSync(key) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
