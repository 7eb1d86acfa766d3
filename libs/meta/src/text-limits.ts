/** Texts that are longer than a platform takes: cut for titles, split for messages. Pure. */

/** How a platform counts: UTF-16 units, or bytes of UTF-8. */
export type TextUnit = 'characters' | 'bytes'

export interface TextLimit {
  most: number
  unit: TextUnit
}

export function sizeOf(text: string, unit: TextUnit): number {
  return unit === 'bytes' ? Buffer.byteLength(text) : text.length
}

/** Cuts between characters as people see them, so that no emoji is halved; `…` tells that something is missing. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text
  let kept = ''
  for (const segment of graphemes(text)) {
    if (kept.length + segment.length > limit - 1) break
    kept += segment
  }
  return `${kept}…`
}

/**
 * Parts that fit, broken at white space (which is dropped there), within a word only if it is too long by itself.
 * @returns at least one part.
 */
export function splitText(text: string, { most, unit }: TextLimit): string[] {
  if (sizeOf(text, unit) <= most) return [text]
  const parts: string[] = []
  let part = ''
  let used = 0
  for (const piece of piecesOf(text, most, unit)) {
    const size = sizeOf(piece, unit)
    if (used + size > most) {
      parts.push(part.trimEnd())
      part = ''
      used = 0
    }
    // White space at the place of a break is dropped.
    if (part === '' && parts.length > 0 && piece.trim() === '') continue
    part += piece
    used += size
  }
  parts.push(part.trimEnd())
  const kept = parts.filter((one) => one !== '')
  return kept.length === 0 ? [''] : kept
}

/** Words with the white space behind them; what is too long for a part, character by character. */
function piecesOf(text: string, most: number, unit: TextUnit): string[] {
  return text
    .split(/(?<=\s)(?=\S)/)
    .flatMap((word) => (sizeOf(word, unit) <= most ? [word] : graphemes(word)))
}

function graphemes(text: string): string[] {
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment)
}
