/**
 * What a person wrote, without what their program added: the quoted mail, the signature, "sent from my phone".
 * Pure. Own code: the libraries for it match whole texts with expressions that a made-up mail can keep busy for
 * minutes, or need a newer Node; here each line is looked at once, and only its beginning.
 */

/** Longer texts are cut. */
export const MAX_TEXT_CHARS = 100_000
const LINE_CHARS = 300
/** An attribution ("On … wrote:") may be wrapped over this many lines. */
const ATTRIBUTION_LINES = 4
const HEADER_LINES = 8

const SIGNATURE = /^(--|-- |—|__)$/
const SENT_FROM =
  /^(sent from (my |mail for |yahoo|outlook|proton)|get outlook for|enviado (desde|do meu|a partir) |obtener outlook para|obter o outlook|envoyé (de mon|depuis|à partir de)|télécharger outlook|von meinem .{1,30} gesendet|gesendet mit |inviato da |scarica outlook)/i
const ORIGINAL =
  /^[-_*\s]*(original message|original appointment|mensaje original|mensagem original|message d'origine|message original|ursprüngliche nachricht|messaggio originale)[-_*\s]*$/i
const RULE = /^_{10,}$/
const ATTRIBUTION_START = /^(on|el|em|le|am|il|at|op|no dia|a las|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})\b/i
const ATTRIBUTION_END =
  /(wrote|writes|escribió|escribi[oó]|escreveu|a écrit|schrieb( .{1,80})?|ha scritto|scrisse)\s*:$/i
const HEADER_START = /^\*?(from|de|von|da|van)\s?:\*? ?\S/i
const HEADER =
  /^\*?(from|de|von|da|van|sent|enviado( el| em)?|envoyé|gesendet|inviato|date|fecha|data|datum|to|para|à|an|a|cc|subject|asunto|assunto|objet|betreff|oggetto)\s?:/i

/** @returns the part that is new, without blank lines around it; empty if nothing is. */
export function cutQuoted(text: string): string {
  const lines = text
    .slice(0, MAX_TEXT_CHARS)
    .replace(/\r\n?/g, '\n')
    .split('\n')
    .map((line) => line.trimEnd())
  const kept: string[] = []
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!
    if (line.startsWith('>')) continue
    const attributed = attributionAt(lines, at)
    if (attributed > 0) {
      // Without marks there is no telling where the quoted mail ends; with them, answers may stand in between.
      if (!quotesFollow(lines, at + attributed)) break
      at += attributed - 1
      continue
    }
    if (endsMessage(lines, at)) break
    kept.push(line)
  }
  return kept
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** @returns how many lines an attribution at this line has; 0 if there is none. */
function attributionAt(lines: readonly string[], at: number): number {
  const first = lines[at]!.slice(0, LINE_CHARS)
  if (!ATTRIBUTION_START.test(first)) return 0
  let joined = ''
  for (let count = 1; count <= ATTRIBUTION_LINES; count += 1) {
    const line = lines[at + count - 1]?.slice(0, LINE_CHARS)
    if (line === undefined || line === '' || line.startsWith('>')) return 0
    joined = `${joined} ${line}`.slice(-LINE_CHARS)
    if (line.endsWith(':')) return ATTRIBUTION_END.test(joined) && hasDigit(lines, at, count) ? count : 0
  }
  return 0
}

/** An attribution names a date or an address; a sentence such as "El cliente escribió:" does not. */
function hasDigit(lines: readonly string[], at: number, count: number): boolean {
  return lines.slice(at, at + count).some((line) => /[\d@]/.test(line.slice(0, LINE_CHARS)))
}

function quotesFollow(lines: readonly string[], from: number): boolean {
  for (let at = from; at < lines.length; at += 1) {
    if (lines[at] !== '') return lines[at]!.startsWith('>')
  }
  return false
}

function endsMessage(lines: readonly string[], at: number): boolean {
  const line = lines[at]!.slice(0, LINE_CHARS)
  if (SIGNATURE.test(line) || SENT_FROM.test(line) || ORIGINAL.test(line)) return true
  if (RULE.test(line)) return headerBlockAt(lines, at + 1)
  return HEADER_START.test(line) && headerBlockAt(lines, at)
}

/** Outlook quotes without marks: a block of From, Sent, To, Subject. */
function headerBlockAt(lines: readonly string[], at: number): boolean {
  const block = lines.slice(at, at + HEADER_LINES).map((line) => line.slice(0, LINE_CHARS))
  const from = block.findIndex((line) => line !== '')
  return (
    from >= 0 &&
    HEADER_START.test(block[from]!) &&
    block.slice(from).filter((line) => HEADER.test(line)).length >= 3
  )
}
