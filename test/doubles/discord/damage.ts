/** Events as they should not be: some values of a payload replaced, removed, nested or blown up. */

const STRANGE: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  '',
  'x'.repeat(5_000),
  '\u0000',
  [],
  {},
  [null],
  { a: {} },
]

/** A damaged copy. @param draw a whole number from 0 to below its argument. */
export function damage(value: unknown, draw: (below: number) => number): unknown {
  const copy = structuredClone(value)
  for (let times = 1 + draw(3); times > 0; times -= 1) {
    const places: { of: Record<string, unknown>; key: string }[] = []
    collect(copy, places)
    const place = places[draw(places.length)]
    if (place === undefined) break
    if (draw(4) === 0) delete place.of[place.key]
    else place.of[place.key] = structuredClone(STRANGE[draw(STRANGE.length)])
  }
  return copy
}

function collect(value: unknown, places: { of: Record<string, unknown>; key: string }[]): void {
  if (typeof value !== 'object' || value === null) return
  const of = value as Record<string, unknown>
  for (const key of Object.keys(of)) {
    places.push({ of, key })
    collect(of[key], places)
  }
}
