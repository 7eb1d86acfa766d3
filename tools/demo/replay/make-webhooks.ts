/**
 * Writes webhooks.jsonl: what twelve made-up people write to the shop on WhatsApp and five on Telegram, as bodies of
 * the shape that the platforms post. Run it only to change the story: `node --import ./test/support/source-loader.mjs tools/demo/replay/make-webhooks.ts`.
 *
 * A line: { platform, body, twice?, burst?, expects: [{ chat, says }] }
 *   `twice`  the platform delivers this body two times
 *   `burst`  sent without waiting for the answers to what the same person wrote before
 *   `says`   what the answers to it must contain, in their order
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

type Saying = readonly [text: string, says: readonly string[], more?: { burst?: boolean }]
interface Person {
  platform: 'whatsapp' | 'telegram'
  id: string
  name: string
  says: readonly Saying[]
}

const PHONE_NUMBER_ID = '106540352242922'
const START = 1_767_225_600

/** What the shop asks, by a word that only this question has. */
const ES = {
  ...{ item: 'Camiseta', size: 'talla', count: 'Cuántas', address: 'dirección' },
  ...{ sure: 'Confirmas', noted: 'anotado' },
}
const EN: typeof ES = {
  ...{ item: 'Camiseta', size: 'which size', count: 'How many', address: 'Where shall' },
  ...{ sure: 'Is that right', noted: 'is noted' },
}

/** From the item to the question whether all is right. */
const choose = (shop: typeof ES, item: string, size: string, count: string, address: string): Saying[] => [
  [item, [shop.size]],
  [size, [shop.count]],
  [count, [shop.address]],
  [address, [shop.sure]],
]
const GREETING: Saying = ['hola', ['asistente']]
const AVENIDA = 'Avenida del Puerto 7, 3º B'

const ORDER: Saying[] = [
  ['pedido', [ES.item]],
  ...choose(ES, 'Camiseta', 'M', '2', 'Calle Mayor 12'),
  ['sí', [ES.noted]],
]
const CAREFUL: Saying[] = [
  GREETING,
  ['pedido', [ES.item]],
  ['zapatos', ['no lo tenemos']],
  ['Sudadera', [ES.size]],
  ['XS', ['Las tallas son']],
  ['XL', [ES.count]],
  ['muchas', ['Dime un número']],
  ['1', [ES.address]],
  [AVENIDA, [ES.sure]],
  ['cambiar', ['volvemos a elegir', ES.item]],
  ...choose(ES, '1', 'S', '3', AVENIDA),
  ['si', [ES.noted]],
]
const ENGLISH: Saying[] = [
  ['order', [EN.item]],
  ...choose(EN, 'hoodie', 'L', '1', '12 High Street'),
  ['yes', [EN.noted]],
]
const LEAVER: Saying[] = [
  ['comprar', [ES.item]],
  ['Gorra', [ES.size]],
  ['U', [ES.count]],
  ['/cancelar', ['He dejado']],
  ['encuesta', ['Del 1 al 5']],
]
const IMPATIENT: Saying[] = [
  GREETING,
  ['hola??', ['asistente'], { burst: true }],
  ['hay alguien?', ['asistente'], { burst: true }],
  ...ORDER,
]

const CAST: [Person['platform'], string, string, Saying[]][] = [
  ['whatsapp', '34600111201', 'Lucía Ferrer', ORDER],
  ['whatsapp', '34600111202', 'Iker Salas', CAREFUL],
  ['whatsapp', '34600111203', 'Noa Prieto', ORDER],
  ['whatsapp', '34600111204', 'Bruno Lago', IMPATIENT],
  ['whatsapp', '34600111205', 'Vera Ochoa', ORDER],
  ['whatsapp', '34600111206', 'Marcos Rey', LEAVER],
  ['whatsapp', '447700900107', 'Amy Porter', ENGLISH],
  ['whatsapp', '34600111208', 'Olga Duarte', CAREFUL],
  ['whatsapp', '34600111209', 'Hugo Mena', ORDER],
  ['whatsapp', '34600111210', 'Sira Costa', ORDER],
  ['whatsapp', '34600111211', 'Adrián Vidal', IMPATIENT],
  ['whatsapp', '447700900112', 'Tom Hale', ENGLISH],
  ['telegram', '501001', 'Elena', ORDER],
  ['telegram', '501002', 'Pau', CAREFUL],
  ['telegram', '501003', 'Irene', LEAVER],
  ['telegram', '501004', 'Kate', ENGLISH],
  ['telegram', '501005', 'Leo', IMPATIENT],
]
const PEOPLE: Person[] = CAST.map(([platform, id, name, says]) => ({ platform, id, name, says }))

let serial = 0
const whatsappMessage = (person: Person, text: string) => ({
  from: person.id,
  id: `wamid.HBgL${Buffer.from(`${person.id}-${String(++serial).padStart(4, '0')}`)
    .toString('base64')
    .replace(/=+$/, '')}`,
  timestamp: String(START + serial),
  type: 'text',
  text: { body: text },
})
const whatsappEvent = (value: object) => ({
  object: 'whatsapp_business_account',
  entry: [
    {
      id: '102290129340398',
      changes: [
        {
          field: 'messages',
          value: {
            messaging_product: 'whatsapp',
            metadata: { display_phone_number: '15550783881', phone_number_id: PHONE_NUMBER_ID },
            ...value,
          },
        },
      ],
    },
  ],
})
const whatsappBody = (entries: [Person, string][]) =>
  whatsappEvent({
    contacts: entries.map(([person]) => ({ profile: { name: person.name }, wa_id: person.id })),
    messages: entries.map(([person, text]) => whatsappMessage(person, text)),
  })
const telegramBody = (person: Person, text: string) => ({
  update_id: 700_000_000 + ++serial,
  message: {
    message_id: 40 + serial,
    from: { id: Number(person.id), is_bot: false, first_name: person.name, language_code: 'es' },
    chat: { id: Number(person.id), first_name: person.name, type: 'private' },
    date: START + serial,
    text,
    ...(text.startsWith('/') ? { entities: [{ type: 'bot_command', offset: 0, length: text.length }] } : {}),
  },
})

const lines: object[] = []
const longest = Math.max(...PEOPLE.map(({ says }) => says.length))
for (let turn = 0; turn < longest; turn++) {
  const speaking = PEOPLE.filter(({ says }) => says[turn] !== undefined)
  while (speaking.length > 0) {
    const person = speaking.shift() as Person
    const [text, says, more = {}] = person.says[turn] as Saying
    const expects = [{ chat: person.id, says }]
    if (person.platform === 'telegram') {
      lines.push({ platform: 'telegram', ...more, expects, body: telegramBody(person, text) })
      continue
    }
    const entries: [Person, string][] = [[person, text]]
    // Meta bundles what arrives together: here every fourth body carries two people's messages.
    if (lines.length % 4 === 3 && more.burst !== true && speaking[0]?.platform === 'whatsapp') {
      const other = speaking[0]
      const [otherText, otherSays, otherMore = {}] = other.says[turn] as Saying
      if (otherMore.burst !== true) {
        speaking.shift()
        entries.push([other, otherText])
        expects.push({ chat: other.id, says: otherSays })
      }
    }
    lines.push({
      platform: 'whatsapp',
      ...more,
      ...(lines.length % 7 === 5 ? { twice: true } : {}),
      expects,
      body: whatsappBody(entries),
    })
  }
}
// A delivery report, which is acknowledged and answered by nothing.
const [{ id: reader }] = PEOPLE as [Person]
const report = {
  id: 'wamid.HBgLstatus0001',
  status: 'delivered',
  timestamp: String(START + 90),
  recipient_id: reader,
}
lines.splice(20, 0, { platform: 'whatsapp', expects: [], body: whatsappEvent({ statuses: [report] }) })
writeFileSync(
  fileURLToPath(new URL('./webhooks.jsonl', import.meta.url)),
  `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`,
)
