/** What the double answers to the queries (`iq`) of a client: as little as lets a real client go on. */
import type { BinaryNode } from '@whiskeysockets/baileys'
import { lidOf } from './pairing.js'
import type { SignalPerson } from './signal-person.js'

export function child(node: BinaryNode | undefined, tag: string): BinaryNode | undefined {
  return Array.isArray(node?.content) ? node.content.find((one) => one.tag === tag) : undefined
}

export function answerQuery(
  query: BinaryNode,
  personOf: (user: string) => SignalPerson | undefined,
  account: { phone: string; device: number } | undefined,
  members: readonly string[] = [],
): BinaryNode {
  return {
    tag: 'iq',
    attrs: { id: query.attrs['id'] ?? '', type: 'result', from: query.attrs['to'] ?? 's.whatsapp.net' },
    content: contentFor(query, personOf, account, members),
  }
}

function contentFor(
  query: BinaryNode,
  personOf: (user: string) => SignalPerson | undefined,
  account: { phone: string; device: number } | undefined,
  members: readonly string[],
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
  if (xmlns === 'w:m') {
    const host: BinaryNode = {
      tag: 'host',
      attrs: { hostname: 'media.whatsapp.net', maxContentLengthBytes: '99999999' },
    }
    return [{ tag: 'media_conn', attrs: { auth: 'auth', ttl: '3600' }, content: [host] }]
  }
  if (xmlns === 'privacy') {
    const category: BinaryNode = { tag: 'category', attrs: { name: 'readreceipts', value: 'all' } }
    return [{ tag: 'privacy', attrs: {}, content: [category] }]
  }
  if (xmlns === 'w:g2') return [group(query.attrs['to'] ?? '', members)]
  if (xmlns === 'usync') {
    const users = listOf(child(child(query, 'usync'), 'list')).map((user) =>
      deviceList(user, personOf, account),
    )
    return [{ tag: 'usync', attrs: {}, content: [{ tag: 'list', attrs: {}, content: users }] }]
  }
  return []
}

function group(jid: string, members: readonly string[]): BinaryNode {
  const participants = members.map((member): BinaryNode => ({ tag: 'participant', attrs: { jid: member } }))
  const attrs = { id: jid, subject: 'Grupo', creation: '1718000000', s_t: '1718000000' }
  return { tag: 'group', attrs, content: participants }
}

/** Everybody has a phone (device 0); the account itself has only the client, so that nothing is copied to it. */
function deviceList(
  user: BinaryNode,
  personOf: (user: string) => SignalPerson | undefined,
  account: { phone: string; device: number } | undefined,
): BinaryNode {
  const jid = user.attrs['jid'] ?? ''
  const own =
    account !== undefined &&
    [account.phone, userOf(lidOf(account.phone, account.device))].includes(userOf(jid))
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
      ...(person === undefined || userOf(jid) === person.lid
        ? []
        : [{ tag: 'lid', attrs: { val: person.lidJid } }]),
    ],
  }
}

function listOf(node: BinaryNode | undefined): BinaryNode[] {
  return Array.isArray(node?.content) ? node.content.filter((one) => one.tag === 'user') : []
}

function userOf(jid: string): string {
  return jid.split(/[:@]/)[0] ?? ''
}
