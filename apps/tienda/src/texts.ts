/** Everything the shop says, in Spanish and English. */
export type Language = 'es' | 'en'

const es = {
  menu: 'Soy el asistente de Tienda Aurora. Escribe "pedido" para comprar, "encuesta" para opinar o "/cancelar" para dejar lo que tengas a medias.',
  product: (list: string) => `Esto es lo que queda hoy:\n${list}\n¿Qué te apuntamos?`,
  productUnknown: (names: string) => `Eso no lo tenemos. Elige entre: ${names}.`,
  soldOut: 'De eso no queda nada. Elige otra cosa.',
  size: (product: string, sizes: string) => `${product}: ¿qué talla? (${sizes})`,
  sizeUnknown: (sizes: string) => `Las tallas son: ${sizes}.`,
  quantity: '¿Cuántas unidades?',
  quantityBad: (left: number) => `Dime un número del 1 al ${left}.`,
  address: '¿A qué dirección lo mandamos?',
  addressShort: 'Necesito calle y número.',
  confirm: (line: string, address: string) => `${line}, para ${address}. ¿Confirmas? (sí / cambiar / no)`,
  confirmUnknown: 'Contesta sí, cambiar o no.',
  change: 'Vale, volvemos a elegir.',
  dropped: 'Pedido descartado.',
  placed: (id: string) => `Listo, pedido ${id} anotado. ¡Gracias!`,
  noStock: 'Se nos han adelantado y ya no queda tanto. Elige otra vez.',
  cancelled: 'He dejado lo que estábamos haciendo.',
  nothingToCancel: 'No había nada en marcha.',
  surveyScore: 'Del 1 al 5, ¿cómo te hemos atendido?',
  surveyScoreBad: 'Un número del 1 al 5, por favor.',
  surveyWhy: '¿Qué podríamos mejorar?',
  surveyThanks: (score: number): string =>
    score >= 4 ? '¡Qué alegría! Gracias.' : 'Tomamos nota. Gracias por contarlo.',
}

const en: typeof es = {
  menu: 'I am the assistant of Tienda Aurora. Write "order" to buy, "survey" to tell us what you think, or "/cancel" to drop what you have begun.',
  product: (list) => `This is what we have left today:\n${list}\nWhat would you like?`,
  productUnknown: (names) => `We do not have that. Choose one of: ${names}.`,
  soldOut: 'That one is gone. Choose something else.',
  size: (product, sizes) => `${product}: which size? (${sizes})`,
  sizeUnknown: (sizes) => `The sizes are: ${sizes}.`,
  quantity: 'How many?',
  quantityBad: (left) => `Give me a number from 1 to ${left}.`,
  address: 'Where shall we send it?',
  addressShort: 'I need a street and a number.',
  confirm: (line, address) => `${line}, to ${address}. Is that right? (yes / change / no)`,
  confirmUnknown: 'Answer yes, change or no.',
  change: 'Fine, let us choose again.',
  dropped: 'Order dropped.',
  placed: (id) => `Done, order ${id} is noted. Thank you!`,
  noStock: 'Somebody was faster, there is not that much left. Choose again.',
  cancelled: 'I dropped what we were doing.',
  nothingToCancel: 'There was nothing going on.',
  surveyScore: 'From 1 to 5, how did we do?',
  surveyScoreBad: 'A number from 1 to 5, please.',
  surveyWhy: 'What could we do better?',
  surveyThanks: (score) => (score >= 4 ? 'Glad to hear it. Thank you!' : 'Noted. Thank you for telling us.'),
}

const TEXTS: Record<Language, typeof es> = { es, en }

export function textsFor(language: Language): typeof es {
  return TEXTS[language]
}

const ENGLISH = /\b(order|buy|survey|cancel|hello|hi)\b/i

/** The language of a first message: what it says decides, then what the platform reports. */
export function languageOf(body: string, reported: string | undefined): Language {
  if (ENGLISH.test(body)) return 'en'
  if (/\b(pedido|comprar|encuesta|cancelar|hola)\b/i.test(body)) return 'es'
  return reported?.toLowerCase().startsWith('en') === true ? 'en' : 'es'
}

/** Compares answers: case, accents and surrounding space do not matter. */
export function plain(answer: string): string {
  return answer
    .normalize('NFD')
    .replace(/\p{Diacritic}/gu, '')
    .trim()
    .toLowerCase()
}
