/**
 * Statements of the hot paths: built by Kysely once for each form, afterwards only bound to their values. Building one
 * takes several times as long as a database takes to run it.
 */
import type { CompiledQuery } from 'kysely'
import type { Session } from './sql-link.js'

/** Stands in a statement for a value that is bound later. */
class Slot {
  constructor(readonly name: string) {}
}

/** A value that is bound later, typed as what the builder expects there. */
export function slot<T>(name: string): T {
  return new Slot(name) as T
}

export type Values = Record<string, unknown>

/** Forms differ by what a commit holds, not by how much: far fewer than this come up. */
const MOST_FORMS = 500

export class Statements {
  private readonly known = new Map<string, readonly CompiledQuery[]>()

  /**
   * @param form names the statements that `build` makes: the same name, the same text.
   * @param values what the slots stand for; each must be there, if only as null.
   */
  bind(db: Session, form: string, values: Values, build: (db: Session) => CompiledQuery[]): CompiledQuery[] {
    let compiled = this.known.get(form)
    if (!compiled) {
      if (this.known.size >= MOST_FORMS) this.known.clear()
      compiled = build(db)
      this.known.set(form, compiled)
    }
    return compiled.map((query) => ({
      ...query,
      parameters: query.parameters.map((one) => valueOf(one, values)),
    }))
  }

  /** The same for one statement. */
  async run<R>(
    db: Session,
    form: string,
    values: Values,
    build: (db: Session) => CompiledQuery<R>,
  ): Promise<{ rows: R[]; changed: number }> {
    const [query] = this.bind(db, form, values, (session) => [build(session)])
    const { rows, numAffectedRows } = await db.executeQuery(query as CompiledQuery<R>)
    return { rows, changed: Number(numAffectedRows ?? 0) }
  }
}

function valueOf(parameter: unknown, values: Values): unknown {
  if (!(parameter instanceof Slot)) return parameter
  const value = values[parameter.name]
  // A driver would take it for null.
  if (value === undefined) throw new TypeError(`The statement's value "${parameter.name}" is missing.`)
  return value
}
