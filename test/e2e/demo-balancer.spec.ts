/** The demo's balancer, where its user or a platform meets it first. */
import { describe, expect, it } from '@jest/globals'
import { startBalancer } from '../../tools/demo/balancer.mjs'
import { onTestEnd } from '../support/index.js'

async function balancer(home?: string) {
  const one = await startBalancer(home === undefined ? {} : { home })
  onTestEnd(() => one.stop())
  return (path: string) => fetch(`${one.url}${path}`, { redirect: 'manual' })
}

describe("the demo's balancer", () => {
  it('sends who opens its address to the chat, and nobody else', async () => {
    const get = await balancer('/chat')
    const home = await get('/')
    expect([home.status, home.headers.get('location')]).toEqual([302, '/chat'])
    expect((await get('/chat')).status).toBe(503)
  })

  it('says that no replica is up', async () => {
    const get = await balancer()
    const reply = await get('/')
    expect([reply.status, reply.headers.get('retry-after'), await reply.text()]).toEqual([
      503,
      '1',
      'No replica is up.',
    ])
  })
})
