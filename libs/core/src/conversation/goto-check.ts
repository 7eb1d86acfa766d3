/**
 * Finds `c.goto('name')` with a literal name in the source text of a step, so that a goto to a step that does not
 * exist is an error at start rather than in the middle of somebody's order. What cannot be seen (a computed name,
 * a function called by the step) is checked when it is called.
 */
const COMMENTS = /\/\*[\s\S]*?\*\/|(?<![:'"`\w])\/\/[^\n]*/g

/** @returns the literal names that the step's own parameter is asked to go to, each once. */
export function literalGotos(source: (...args: never[]) => unknown): string[] {
  const text = Function.prototype.toString.call(source).replace(COMMENTS, '')
  const parameter = parameterOf(text)
  if (parameter === undefined) return []
  const call = new RegExp(
    `(?<![\\w$.])${parameter.replaceAll('$', '\\$')}\\s*\\.\\s*goto\\(\\s*(?:'([^'\\\\\\n]*)'|"([^"\\\\\\n]*)")\\s*\\)`,
    'g',
  )
  return [...new Set([...text.matchAll(call)].map((match) => match[1] ?? match[2] ?? ''))]
}

/** Name of the first parameter of an arrow function, a function or a method, if it is a plain one. */
function parameterOf(text: string): string | undefined {
  const open = text.indexOf('(')
  const arrow = text.indexOf('=>')
  // `c => …` has no parenthesis before its arrow.
  if (arrow >= 0 && (open < 0 || arrow < open)) return /^(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(text)?.[1]
  return open < 0 ? undefined : /^\(\s*([A-Za-z_$][\w$]*)/.exec(text.slice(open))?.[1]
}
