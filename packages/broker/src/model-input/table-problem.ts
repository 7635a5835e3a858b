/** A request that a table refuses. Thrown and caught within this directory; neither text carries a value. */
export class TableProblem extends Error {
  /** A direct field of the object that was being closed, when the problem is one of its fields. */
  readonly field: string | undefined

  constructor(problem: string, field?: string) {
    super(problem)
    this.field = field
  }
}
