/**
 * Arguments of the project's own commands: `--name` is a switch, `--name=value` takes a value. What is unknown or
 * malformed is refused, with the name that was probably meant. No dependency: this runs before anything is installed.
 */

/**
 * @typedef {{ kind: 'switch' } | { kind: 'text', what: string } | { kind: 'number', least: number, most: number }} Option
 *   `what`: the value, in words
 */

/**
 * @param {readonly string[]} args
 * @param {Record<string, Option>} options by name, without dashes
 * @returns {Record<string, true | string | number>} those given, by name; the last one counts
 * @throws {Error} that names the argument, and what was probably meant
 */
export function readArguments(args, options) {
  /** @type {Record<string, true | string | number>} */
  const given = {}
  for (const argument of args) {
    const [, name = '', value] = /^--([^=]*)(?:=([\s\S]*))?$/.exec(argument) ?? []
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined) throw new Error(unknown(argument, name, options))
    given[name] = valueOf(argument, name, value, option)
  }
  return given
}

/**
 * @param {string} argument
 * @param {string} name
 * @param {string | undefined} value
 * @param {Option} option
 */
function valueOf(argument, name, value, option) {
  if (option.kind === 'switch') {
    if (value === undefined) return true
    throw new Error(`${argument}: --${name} takes no value; give it as --${name}, or leave it out.`)
  }
  if (option.kind === 'text') {
    if (value !== undefined && value !== '') return value
    throw new Error(`${argument}: ${option.what} is needed, as --${name}=….`)
  }
  const number = Number(value)
  const { least, most } = option
  if (/^\d+$/.test(value ?? '') && number >= least && number <= most) return number
  throw new Error(`${argument}: a whole number from ${least} to ${most} is needed, as --${name}=${least}.`)
}

/**
 * @param {string} argument
 * @param {string} name
 * @param {Record<string, Option>} options
 */
function unknown(argument, name, options) {
  const known = Object.entries(options).map(([one, { kind }]) =>
    kind === 'switch' ? `--${one}` : `--${one}=…`,
  )
  const meant = name === '' ? argument.replace(/^-+/, '').replace(/=.*/s, '') : name
  const near = Object.keys(options)
    .map((one) => ({ one, edits: distance(one, meant.toLowerCase()) }))
    .sort((x, y) => x.edits - y.edits)
    .find(({ one, edits }) => edits <= Math.max(2, Math.floor(one.length / 3)))
  const hint = near === undefined ? '' : ` Did you mean --${near.one}?`
  return `Unknown argument ${argument}.${hint} Known: ${known.join(', ')}.`
}

/**
 * Letters to change, add or leave out.
 * @param {string} a
 * @param {string} b
 */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      next[j] = Math.min(at(row, j) + 1, at(next, j - 1) + 1, at(row, j - 1) + same)
    }
    row = next
  }
  return at(row, b.length)
}

/**
 * @param {number[]} row
 * @param {number} index
 */
function at(row, index) {
  return row[index] ?? 0
}
