/** What comes before a ticket, and that it never swaps two messages (T2). */
import { afterEach, describe, expect, it } from '@jest/globals'
import { Mesh } from './support/mesh.js'

let mesh: Mesh

afterEach(() => mesh.stop())

describe.each([false, true])('T2: turns and data apart, durability %s', (durability) => {
  it('T2: the ticket is taken once the message is stored; one that is slow to store is not overtaken', async () => {
    mesh = new Mesh((bot) => bot.onMessage((ctx) => ctx.reply(ctx.body)), {
      placement: 'separate',
      config: { durability },
    })
    const { store } = mesh
    const log: string[] = []
    let finish: () => void = () => undefined
    const arrive = store.arrive.bind(store)
    store.arrive = async (key, arrival) => {
      log.push(`storing ${arrival.messageId}`)
      if (arrival.messageId === 'one') await new Promise<void>((resolve) => (finish = resolve))
      const answer = await arrive(key, arrival)
      log.push(`stored ${arrival.messageId}`)
      return answer
    }
    const replica = await mesh.add()
    const { turns } = replica.coordinator
    const take = turns.take.bind(turns)
    turns.take = (key, options) => {
      log.push(`ticket ${options?.dedupeId}`)
      return take(key, options)
    }
    const accepted = ['one', 'two'].map((id) => replica.provider.receive({ id, body: id }))
    await mesh.settle()
    const elsewhere = mesh.run(replica.provider.receive({ id: 'other', body: 'other', chatId: '7' }))
    await elsewhere
    await mesh.until(() => mesh.said.length === 1)
    expect({ log, said: mesh.said }).toEqual({
      log: ['storing one', 'storing other', 'stored other', 'ticket other'],
      said: ['other'],
    })
    finish()
    await mesh.run(Promise.all(accepted))
    await mesh.until(() => mesh.said.length === 3)
    expect(log.slice(4)).toEqual(['stored one', 'ticket one', 'storing two', 'stored two', 'ticket two'])
    expect(mesh.said).toEqual(['other', 'one', 'two'])
  })
})
