/** A turn that was lost may find out late; by then this replica may serve the chat under another one (L2, K4). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Mesh } from './support/mesh.js'

let mesh: Mesh

afterEach(() => mesh.stop())

describe('L2: what becomes of a lost turn is known late', () => {
  it('L2: a read that ends after its turn was lost leaves the conversation of a later turn alone', async () => {
    let release: () => void = () => undefined
    mesh = new Mesh((bot) => {
      bot.conversation('chat', async (c) => void (await c.say(`hello ${await c.ask('name?')}`)), {
        on: 'start',
      })
      bot.onMessage((ctx) => (ctx.body === 'hold' ? new Promise<void>((go) => (release = go)) : undefined))
    })
    const [a, b] = [await mesh.add(), await mesh.add()]
    const open = mesh.store.openState.bind(mesh.store)
    let answer: (() => void) | undefined
    mesh.store.openState = async (...args) => {
      if (answer === undefined) await new Promise<void>((go) => (answer = go))
      return open(...args)
    }
    await mesh.tell(b, 'hold')
    await mesh.tell(a, 'behind it')
    release()
    await mesh.until(() => answer !== undefined)
    a.clock.pause()
    await mesh.clock.advance(16_000)
    a.clock.resume()
    await mesh.settle()
    await mesh.tell(a, 'start')
    expect(mesh.said).toEqual(['name?'])
    answer?.()
    await mesh.settle()
    await mesh.tell(a, 'Ana')
    expect(mesh.said).toEqual(['name?', 'hello Ana'])
  })
})
