/**
 * What all errors of Botmesh have in common.
 *
 * `instanceof` also recognises errors of another copy of this library (two versions in one process): each class
 * is matched by its brand, not by identity.
 */
const BRAND = Symbol.for('botmesh.error.brands')

interface Branded {
  readonly [BRAND]?: readonly string[]
}

/** The base of all errors of Botmesh. */
export abstract class BotmeshError<Details extends object = object> extends Error {
  /** The brand that `instanceof` compares; each subclass names its own. */
  static readonly brand: string = 'BotmeshError'

  /** Stable, upper-case identifier, such as `LEASE_LOST`. */
  abstract readonly code: string
  /** True if the same call may succeed later without anything being changed. */
  readonly retryable: boolean
  readonly details: Details

  protected constructor(
    message: string,
    details: Details,
    options: { cause?: unknown; retryable?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.details = details
    this.retryable = options.retryable ?? false
    const brands: string[] = []
    for (
      let type: unknown = new.target;
      typeof type === 'function' && type !== Error;
      type = Object.getPrototypeOf(type)
    ) {
      const brand = ownBrand(type)
      if (brand !== undefined) brands.push(brand)
    }
    Object.defineProperty(this, BRAND, { value: brands, enumerable: false })
  }

  /** A class without a brand of its own (an application's) is matched by identity, as any other class is. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    const brand = ownBrand(this)
    if (brand === undefined) return Function.prototype[Symbol.hasInstance].call(this, value)
    return (
      typeof value === 'object' && value !== null && ((value as Branded)[BRAND]?.includes(brand) ?? false)
    )
  }
}

function ownBrand(type: object): string | undefined {
  return Object.hasOwn(type, 'brand') ? String((type as { brand: unknown }).brand) : undefined
}
