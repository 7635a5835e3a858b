/** What is wrong with a JSON text, and where. Never carries a part of the text. */
export class JsonProblem extends Error {
  override readonly name = 'JsonProblem'
  /** Of the byte at which reading ended. */
  readonly offset: number

  constructor(problem: string, offset: number) {
    super(problem)
    this.offset = offset
  }
}
