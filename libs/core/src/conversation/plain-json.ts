/**
 * Copies a value if it is plain JSON (H3): what a checkpoint holds must mean the same on another replica, so a Date
 * that would come back as a string, or a class instance that would come back without its methods, is refused with
 * the path that leads to it. An undefined property counts as absent.
 */
export type PlainCopy<T> = { plain: true; value: T } | { plain: false; path: string; what: string }

interface Copying {
  refused: { path: string; what: string } | null
  /** Characters that may still come. */
  room: number
}

const MAX_DEPTH = 200
/**
 * Most that is stored of one value: characters of its texts and names, and `VALUE_CHARS` for everything else. It travels
 * with every message of its chat, so what is larger belongs into a store of its own.
 */
export const MAX_CHARS = 1_000_000
const VALUE_CHARS = 8

/** @param root how the value is called in `path`, such as `c.state`. */
export function plainCopy<T>(value: T, root: string): PlainCopy<T> {
  const copying: Copying = { refused: null, room: MAX_CHARS }
  const copied = copy(value, root, 0, copying)
  return copying.refused === null ? { plain: true, value: copied as T } : { plain: false, ...copying.refused }
}

function copy(value: unknown, path: string, depth: number, copying: Copying): unknown {
  if (copying.refused !== null) return undefined
  copying.room -= typeof value === 'string' ? value.length : VALUE_CHARS
  if (copying.room < 0) {
    copying.refused = { path, what: `where it has more than ${MAX_CHARS.toLocaleString('en')} characters` }
    return undefined
  }
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  if (typeof value === 'object' && depth < MAX_DEPTH) {
    if (Array.isArray(value)) {
      return value.map((item, i) => copy(item, `${path}[${i}]`, depth + 1, copying))
    }
    if (isPlainObject(value)) return copyObject(value, path, depth, copying)
  }
  copying.refused = { path, what: nameOf(value, depth) }
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

function copyObject(value: object, path: string, depth: number, copying: Copying): object {
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue
    copying.room -= key.length
    const copied = copy(item, `${path}.${key}`, depth + 1, copying)
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
