/**
 * Fences as decimal text and back. Every message takes both ways, and for numbers of sixteen digits the language's own
 * conversions, which have to be right for every number there is, cost several times as much as these.
 */

const LOW = 1_000_000
let lastHigh = 0
let lastHighText = ''

/** @param fence a whole number from 0 below 2^53. */
export function fenceText(fence: number): string {
  if (fence < LOW) return String(fence)
  const high = Math.floor(fence / LOW)
  if (high !== lastHigh) {
    lastHigh = high
    lastHighText = String(high)
  }
  // The leading 1 keeps the zeros behind it.
  return lastHighText + String(LOW + (fence - high * LOW)).slice(1)
}

/** The number whose digits stand in `text` from `from` until before `to`; NaN if there are others. */
export function readDigits(text: string, from: number, to: number): number {
  if (to <= from) return Number.NaN
  let fence = 0
  for (let at = from; at < to; at += 1) {
    const digit = text.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return Number.NaN
    fence = fence * 10 + digit
  }
  return fence
}
