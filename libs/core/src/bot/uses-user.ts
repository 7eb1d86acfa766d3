/**
 * Does a handler use `ctx.user`? Its state must have been read before the handler runs, and a bot that has no use
 * for it should not pay a trip for every message, so handlers are looked through at start, as test runners look
 * through test functions for the fixtures that they name.
 *
 * It errs on one side only: a handler is found innocent if it does nothing with its context but read properties
 * other than `user` from it. One that passes its context on, takes it apart, or cannot be read, is taken to use it.
 */
type Code = (...args: never[]) => unknown

const CALLS = Symbol('calls')
type Wrapper = Code & { [CALLS]?: Code }

/**
 * Marks `wrapper` as doing nothing with its arguments but to call `code` with them (a method of an injected class),
 * so that `code` is what is looked through.
 */
export function callsOnly<W extends Code>(wrapper: W, code: Code): W {
  return Object.defineProperty(wrapper, CALLS, { value: code })
}

/** Properties of a step's context through which the user can be reached. */
const WAYS = new Set(['user', 'ctx'])

export function mayUseUser(code: Code): boolean {
  const source = Function.prototype.toString.call((code as Wrapper)[CALLS] ?? code)
  if (/\[native code\]|\barguments\b|\beval\b/.test(source)) return true
  const parameters = parametersOf(source)
  if (parameters === null) return true
  return parameters.some((name) => escapes(source, name))
}

/** Plain parameter names, or null if there is anything but plain names. */
function parametersOf(source: string): string[] | null {
  const bare = /^(?:async\s+)?([\w$]+)\s*=>/.exec(source)
  if (bare?.[1] !== undefined) return [bare[1]]
  const open = source.indexOf('(')
  const close = source.indexOf(')', open)
  if (open < 0 || close < 0) return null
  const names = source
    .slice(open + 1, close)
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  return names.every((name) => /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) ? names : null
}

/** True if `name` occurs otherwise than as `name.property` with a harmless property, its declaration aside. */
function escapes(source: string, name: string): boolean {
  const occurrence = new RegExp(
    `(?<![\\p{ID_Continue}$])(?<!(?<!\\.\\.)\\.)${name.replace(/\$/g, '\\$')}(?![\\p{ID_Continue}$])`,
    'gu',
  )
  let declared = false
  for (const match of source.matchAll(occurrence)) {
    if (!declared) {
      declared = true
      continue
    }
    const property = /^\s*\??\.\s*([\p{ID_Start}$_][\p{ID_Continue}$]*)/u.exec(
      source.slice(match.index + name.length),
    )
    if (property?.[1] === undefined || WAYS.has(property[1])) return true
  }
  return false
}

/** The code of a bot that gets a context, as far as it is declared. */
export class UserUse {
  private readonly code: Code[] = []
  private readonly flowSteps: (() => readonly { run: Code; source?: Code }[])[] = []

  add(code: Code): void {
    this.code.push(code)
  }

  /** @param steps asked at start: a builder's steps come later than the builder. */
  addFlow(steps: () => readonly { run: Code; source?: Code }[]): void {
    this.flowSteps.push(steps)
  }

  /** Flows and conversations declared. */
  get flows(): number {
    return this.flowSteps.length + this.code.length
  }

  /** True if any handler, hook, step, conversation or hand-over function may use `ctx.user`. */
  found(router: { code: readonly Code[] }, options: { conversation: { fallback: unknown } }): boolean {
    const { fallback } = options.conversation
    const steps = this.flowSteps.flatMap((all) => all().map((step) => step.source ?? step.run))
    const others = typeof fallback === 'function' ? [fallback as Code] : []
    return [...router.code, ...this.code, ...steps, ...others].some(mayUseUser)
  }
}
