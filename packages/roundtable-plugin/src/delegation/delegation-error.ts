/** A delegation was refused. The message is for the model that asked; it says what to do instead. */
export class DelegationError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'DelegationError'
  }
}
