/** Damages webhook bodies for fuzz tests: bytes, or one value of the JSON replaced by something of another kind. */
export interface Chance {
  next(): number
  int(below: number): number
  pick<T>(from: readonly T[]): T
}

const ODD_VALUES = [null, 0, -1, '', [], {}, true, 1e300, 'x'.repeat(5000), { id: {} }, [[]]]

export function damageBody(text: string, chance: Chance): string {
  if (chance.next() < 0.3) {
    const at = chance.int(text.length)
    return text.slice(0, at) + String.fromCharCode(chance.int(256)) + text.slice(at + chance.int(20))
  }
  const root: unknown = JSON.parse(text)
  let place = root as Record<string, unknown>
  for (;;) {
    const keys = Object.keys(place)
    if (keys.length === 0) break
    const key = chance.pick(keys)
    const child = place[key]
    if (typeof child !== 'object' || child === null || chance.next() < 0.15) {
      if (chance.next() < 0.2) delete place[key]
      else place[key] = chance.pick(ODD_VALUES)
      break
    }
    place = child as Record<string, unknown>
  }
  return JSON.stringify(root)
}
