/** What the double answers to the queries (`iq`) of a client: as little as lets a real client go on. */
import type { BinaryNode } from '@whiskeysockets/baileys'
import type { SignalPerson } from './signal-person.js'

export function child(node: BinaryNode | undefined, tag: string): BinaryNode | undefined {
  return Array.isArray(node?.content) ? node.content.find((one) => one.tag === tag) : undefined
}

export function answerQuery(
  query: BinaryNode,
  personOf: (user: string) => SignalPerson | undefined,
  account: { phone: string; device: number } | undefined,
): BinaryNode {
  return {
    tag: 'iq',
    attrs: { id: query.attrs['id'] ?? '', type: 'result', from: query.attrs['to'] ?? 's.whatsapp.net' },
    content: contentFor(query, personOf, account),
  }
}

function contentFor(
  query: BinaryNode,
  personOf: (user: string) => SignalPerson | undefined,
  account: { phone: string; device: number } | undefined,
): BinaryNode[] {
  const { xmlns } = query.attrs
  if (xmlns === 'encrypt' && child(query, 'count')) return [{ tag: 'count', attrs: { value: '500' } }]
  if (xmlns === 'encrypt' && child(query, 'digest')) return [{ tag: 'digest', attrs: {} }]
  if (xmlns === 'encrypt' && child(query, 'key')) {
    const users = listOf(child(query, 'key')).flatMap((user) => {
      const jid = user.attrs['jid'] ?? ''
      return personOf(userOf(jid))?.bundle(jid) ?? []
    })
    return [{ tag: 'list', attrs: {}, content: users }]
  }
  if (xmlns === 'usync') {
    const users = listOf(child(child(query, 'usync'), 'list')).map((user) =>
      deviceList(user, personOf, account),
    )
    return [{ tag: 'usync', attrs: {}, content: [{ tag: 'list', attrs: {}, content: users }] }]
  }
  return []
}

/** Everybody has a phone (device 0); the account itself has only the client, so that nothing is copied to it. */
function deviceList(
  user: BinaryNode,
  personOf: (user: string) => SignalPerson | undefined,
  account: { phone: string; device: number } | undefined,
): BinaryNode {
  const jid = user.attrs['jid'] ?? ''
  const own = account !== undefined && userOf(jid) === account.phone
  const person = personOf(userOf(jid))
  const device = own
    ? { id: String(account.device), 'key-index': String(account.device) }
    : { id: '0', 'key-index': '0' }
  return {
    tag: 'user',
    attrs: { jid },
    content: [
      {
        tag: 'devices',
        attrs: {},
        content: [{ tag: 'device-list', attrs: {}, content: [{ tag: 'device', attrs: device }] }],
      },
      ...(person === undefined ? [] : [{ tag: 'lid', attrs: { val: person.lidJid } }]),
    ],
  }
}

function listOf(node: BinaryNode | undefined): BinaryNode[] {
  return Array.isArray(node?.content) ? node.content.filter((one) => one.tag === 'user') : []
}

function userOf(jid: string): string {
  return jid.split(/[:@]/)[0] ?? ''
}
