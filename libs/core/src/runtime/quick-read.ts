/**
 * For transports: reading by a zod schema what is on the path of every message. zod builds a copy, and words an error
 * for each optional part that is malformed or absent; a guard that is derived from the same schema only looks. What the
 * guard takes is given back as it came; anything else goes to zod, which decides.
 *
 * So the schema stays the one definition, and only schemas that change nothing of what fits can be read so: no
 * `default`, `coerce` or `transform`. The value of `catch` stands in for what does not fit; that is zod's part.
 */
import { z } from 'zod'

/** Gives undefined for what its schema refuses. */
export interface QuickReader<T extends z.ZodType> {
  (value: unknown): z.output<T> | undefined
  readonly schema: T
}

type Guard = (value: unknown) => boolean

/** Guards of schemas that zod cannot describe (`listOf`). */
const known = new WeakMap<z.core.$ZodType, Guard>()

/**
 * What reads by `schema`. What it returns may carry more than the schema names, and is the very object that was given if
 * that fits.
 * @throws TypeError for a schema with a part for which no guard can be derived.
 */
export function quickReader<T extends z.ZodType>(schema: T): QuickReader<T> {
  const fits = guardOf(schema)
  const read = (value: unknown) => (fits(value) ? (value as z.output<T>) : schema.safeParse(value).data)
  return Object.assign(read, { schema })
}

/**
 * A list of which the malformed members are left out; what is no list counts as absent. Not `z.array().catch(…)`, which
 * would leave out all of them.
 */
export function listOf<T extends z.ZodType>(member: T) {
  const read = quickReader(member)
  const anything = z.unknown().optional()
  const schema = anything.transform((members): z.output<T>[] | undefined =>
    Array.isArray(members) ? members.map((one) => read(one)).filter((one) => one !== undefined) : undefined,
  )
  const fits = arrayGuard(guardOf(member))
  known.set(schema, (value) => value === undefined || fits(value))
  return schema
}

/** True for what the schema takes and gives back with the same values. May be false for what it takes. */
function guardOf(schema: z.core.$ZodType): Guard {
  const guard = known.get(schema)
  if (guard !== undefined) return guard
  const { def } = (schema as z.core.$ZodTypes)._zod
  // `check`: a form such as that of `z.email()`, which is a schema and a check at once.
  const checked = def.checks !== undefined && def.checks.length > 0
  refuseIf('check' in def || (checked && def.type !== 'string'), `a checked ${def.type}`)
  switch (def.type) {
    case 'unknown':
      return () => true
    case 'undefined':
      return (value) => value === undefined
    case 'boolean':
      return (value) => typeof value === 'boolean'
    case 'number':
      refuseIf(def.coerce === true, 'a coerced number')
      return Number.isFinite
    case 'string':
      refuseIf(def.coerce === true, 'a coerced text')
      return textGuard(def.checks ?? [])
    case 'optional':
      return orAbsent(guardOf(def.innerType), undefined)
    case 'nullable':
      return orAbsent(guardOf(def.innerType), null)
    case 'catch':
      return guardOf(def.innerType)
    case 'union':
      // Of others, zod might mend by the first one what is right for the second.
      refuseIf(!def.options.every(isPlain), 'a choice of others than texts, numbers and booleans')
      return unionGuard(def.options.map(guardOf))
    case 'array':
      return arrayGuard(guardOf(def.element))
    case 'record':
      refuseIf(!isAnyText(def.keyType), 'a record of certain names')
      return recordGuard(guardOf(def.valueType))
    case 'object':
      refuseIf(def.catchall !== undefined, 'a strict or loose object')
      return objectGuard(def.shape)
    default:
      return refuse(`"${def.type}"`)
  }
}

function isAnyText(schema: z.core.$ZodType): boolean {
  const { def } = (schema as z.core.$ZodTypes)._zod
  return def.type === 'string' && !('check' in def) && (def.checks ?? []).length === 0
}

function isPlain(schema: z.core.$ZodType): boolean {
  return ['string', 'number', 'boolean'].includes(schema._zod.def.type)
}

function textGuard(checks: readonly z.core.$ZodCheck[]): Guard {
  let least = 0
  let form: RegExp | undefined
  for (const check of checks) {
    const { def } = check._zod as z.core.$ZodChecks['_zod']
    if (def.check === 'min_length') least = Math.max(least, def.minimum)
    else if (def.check === 'string_format' && def.format === 'regex' && form === undefined) form = def.pattern
    else refuse(`a text's check "${def.check}"`)
  }
  if (form !== undefined) {
    const pattern = form
    refuseIf(pattern.global || pattern.sticky, 'a pattern that remembers where it was')
    return (value) => typeof value === 'string' && value.length >= least && pattern.test(value)
  }
  if (least > 0) return (value) => typeof value === 'string' && value.length >= least
  return (value) => typeof value === 'string'
}

function orAbsent(guard: Guard, absent: null | undefined): Guard {
  return (value) => value === absent || guard(value)
}

function unionGuard(guards: readonly Guard[]): Guard {
  return (value) => guards.some((guard) => guard(value))
}

function arrayGuard(member: Guard): Guard {
  return (value) => {
    if (!Array.isArray(value)) return false
    for (const one of value as readonly unknown[]) if (!member(one)) return false
    return true
  }
}

function objectGuard(shape: z.core.$ZodShape): Guard {
  const fields = Object.entries(shape).map(([name, schema]) => {
    const fits = guardOf(schema)
    // An absent field is seen here: most fields of most messages are.
    return { name, fits, optional: schema._zod.def.type !== 'unknown' && fits(undefined) }
  })
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    for (const { name, fits, optional } of fields) {
      const part = (value as Record<string, unknown>)[name]
      if (part === undefined ? !optional : !fits(part)) return false
    }
    return true
  }
}

function recordGuard(member: Guard): Guard {
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    // zod leaves that name out.
    if (Object.hasOwn(value, '__proto__')) return false
    return Object.values(value).every(member)
  }
}

function refuseIf(wrong: boolean, what: string): void {
  if (wrong) refuse(what)
}

function refuse(what: string): never {
  throw new TypeError(`A quick reader cannot look for ${what}: read this with zod alone.`)
}
