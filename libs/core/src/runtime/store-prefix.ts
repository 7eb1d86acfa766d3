/** For stores: the option `prefix`, which begins the names of what a store keeps its data in (C4). */
import { ConfigError } from '../contracts/errors.js'

const PREFIX_FORM = 'letters, digits and underscores, beginning with a letter, at most 40'

/** Default `botmesh`. @param what has such names, in the plural: `tables`. @throws ConfigError */
export function readStorePrefix(what: string, prefix: unknown = 'botmesh'): string {
  if (typeof prefix === 'string' && /^[A-Za-z]\w{0,39}$/.test(prefix)) return prefix
  const shown = typeof prefix === 'string' ? JSON.stringify(prefix.slice(0, 60)) : typeof prefix
  throw new ConfigError(
    `Option "prefix" is ${shown}; accepted: ${PREFIX_FORM} (it begins the ${what}' names).`,
    { option: 'prefix', value: prefix, accepted: PREFIX_FORM },
  )
}
