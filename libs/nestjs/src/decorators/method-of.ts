/** Checks what a method decorator was put on. */
import { ConfigError } from '@botmesh/core'

/** @returns the method's name. @throws ConfigError if it is no instance method with a string name. */
export function methodOf(
  decorator: string,
  prototype: object,
  key: string | symbol,
  descriptor: PropertyDescriptor | undefined,
): string {
  const isStatic = typeof prototype === 'function'
  const owner = isStatic ? prototype.name : prototype.constructor.name
  if (!isStatic && typeof key === 'string' && typeof descriptor?.value === 'function') return key
  throw new ConfigError(
    `@${decorator}() on ${owner}.${String(key)}: accepted are instance methods with a name that is a string.`,
    { option: `@${decorator}` },
  )
}
