/**
 * Copies a value if it is plain JSON (H3): what a checkpoint holds must mean the same on another replica, so a Date
 * that would come back as a string, or a class instance that would come back without its methods, is refused with
 * the path that leads to it. An undefined property counts as absent.
 */
export type PlainCopy<T> = { plain: true; value: T } | { plain: false; path: string; what: string }

interface Refusal {
  path: string
  what: string
}

const MAX_DEPTH = 200

/** @param root how the value is called in `path`, such as `c.state`. */
export function plainCopy<T>(value: T, root: string): PlainCopy<T> {
  const refusals: Refusal[] = []
  const copied = copy(value, root, 0, refusals)
  const refusal = refusals[0]
  return refusal === undefined
    ? { plain: true, value: copied as T }
    : { plain: false, path: refusal.path, what: refusal.what }
}

function copy(value: unknown, path: string, depth: number, refusals: Refusal[]): unknown {
  if (refusals.length > 0) return undefined
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value === 'object' && depth < MAX_DEPTH) {
    if (Array.isArray(value)) {
      return value.map((item, i) => copy(item, `${path}[${i}]`, depth + 1, refusals))
    }
    if (isPlainObject(value)) return copyObject(value, path, depth, refusals)
  }
  refusals.push({ path, what: nameOf(value, depth) })
  return undefined
}

/** Also of another realm, whose `Object.prototype` is another object. */
function isPlainObject(value: object): boolean {
  const proto: unknown = Object.getPrototypeOf(value)
  return (
    proto === null ||
    (Object.getPrototypeOf(proto) === null && Object.hasOwn(proto as object, 'isPrototypeOf'))
  )
}

function copyObject(value: object, path: string, depth: number, refusals: Refusal[]): object {
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue
    const copied = copy(item, `${path}.${key}`, depth + 1, refusals)
    // An assignment to `__proto__` would set the prototype instead.
    if (key === '__proto__')
      Object.defineProperty(out, key, { value: copied, enumerable: true, writable: true })
    else out[key] = copied
  }
  return out
}

function nameOf(value: unknown, depth: number): string {
  if (typeof value !== 'object' || value === null)
    return typeof value === 'number' ? String(value) : typeof value
  if (depth >= MAX_DEPTH) return 'something nested too deeply, or a cycle'
  const name: unknown = (value.constructor as { name?: unknown } | undefined)?.name
  return `an instance of ${typeof name === 'string' && name !== '' ? name : 'a class'}`
}
