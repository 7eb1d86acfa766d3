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

const ORDER: Saying[] = [
  ['pedido', ['Camiseta']],
  ['Camiseta', ['talla']],
  ['M', ['Cuántas']],
  ['2', ['dirección']],
  ['Calle Mayor 12', ['Confirmas']],
  ['sí', ['anotado']],
]
const CAREFUL: Saying[] = [
  ['hola', ['asistente']],
  ['pedido', ['Camiseta']],
  ['zapatos', ['no lo tenemos']],
  ['Sudadera', ['talla']],
  ['XS', ['Las tallas son']],
  ['XL', ['Cuántas']],
  ['muchas', ['Dime un número']],
  ['1', ['dirección']],
  ['Avenida del Puerto 7, 3º B', ['Confirmas']],
  ['cambiar', ['volvemos a elegir', 'Camiseta']],
  ['1', ['talla']],
  ['S', ['Cuántas']],
  ['3', ['dirección']],
  ['Avenida del Puerto 7, 3º B', ['Confirmas']],
  ['si', ['anotado']],
]
const ENGLISH: Saying[] = [
  ['order', ['Camiseta']],
  ['hoodie', ['which size']],
  ['L', ['How many']],
  ['1', ['Where shall']],
  ['12 High Street', ['Is that right']],
  ['yes', ['is noted']],
]
const LEAVER: Saying[] = [
  ['comprar', ['Camiseta']],
  ['Gorra', ['talla']],
  ['U', ['Cuántas']],
  ['/cancelar', ['He dejado']],
  ['encuesta', ['Del 1 al 5']],
]
const IMPATIENT: Saying[] = [
  ['hola', ['asistente']],
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
const whatsappBody = (entries: [Person, string][]) => ({
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
            contacts: entries.map(([person]) => ({ profile: { name: person.name }, wa_id: person.id })),
            messages: entries.map(([person, text]) => whatsappMessage(person, text)),
          },
        },
      ],
    },
  ],
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
// A delivery report and a kind of event that the shop does not know: both are acknowledged and answered by nothing.
lines.splice(20, 0, {
  platform: 'whatsapp',
  expects: [],
  body: {
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
              statuses: [
                {
                  id: 'wamid.HBgLstatus0001',
                  status: 'delivered',
                  timestamp: String(START + 90),
                  recipient_id: '34600111201',
                },
              ],
            },
          },
        ],
      },
    ],
  },
})
writeFileSync(
  fileURLToPath(new URL('./webhooks.jsonl', import.meta.url)),
  `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`,
)
