/** Parts of aggregation expressions. Whatever comes from outside goes through `lit`: `$…` in it would be a field's name. */

export type Expression = object | string | number | boolean | null

/** A value as it is. */
export function lit(value: unknown): Expression {
  return { $literal: value }
}

/** Milliseconds since the epoch by the server's clock, the same everywhere in one command. */
export const NOW: Expression = { $toLong: '$$NOW' }

export function after(ms: number): Expression {
  return { $add: [NOW, Math.ceil(ms)] }
}

/** A list of the document; empty if it is not there. */
export function listOf(field: string): Expression {
  return { $ifNull: [`$${field}`, []] }
}

/** Those of a list for which `condition` holds; in it `$$one` is the element. */
export function only(list: Expression, condition: Expression): Expression {
  return { $filter: { input: list, as: 'one', cond: condition } }
}

/** A list with each element replaced; in `change` `$$one` is the element. */
export function each(list: Expression, change: Expression): Expression {
  return { $map: { input: list, as: 'one', in: change } }
}

/** The last `most` of a list. */
export function newest(list: Expression, most: number): Expression {
  return { $slice: [list, -most] }
}

export function either(condition: Expression, yes: Expression, no: Expression): Expression {
  return { $cond: [condition, yes, no] }
}

/** `$$one.<field>` is among `values`. */
export function among(field: string, values: readonly string[]): Expression {
  return { $in: [`$$one.${field}`, lit(values)] }
}

export function not(condition: Expression): Expression {
  return { $not: [condition] }
}

/** True once a field's instant is over; null and absent: never. */
export function isOver(field: string): Expression {
  return { $lte: [{ $ifNull: [`$${field}`, Number.MAX_SAFE_INTEGER] }, NOW] }
}
