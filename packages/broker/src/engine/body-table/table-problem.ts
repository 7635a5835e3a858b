/** A request that a table refuses. Thrown and caught within this directory; neither text carries a value. */
export class TableProblem extends Error {
  /** When an object was being closed: the direct field that the problem is about, or '' for the object. */
  readonly field: string | undefined

  constructor(problem: string, field?: string) {
    super(problem)
    this.field = field
  }
}
