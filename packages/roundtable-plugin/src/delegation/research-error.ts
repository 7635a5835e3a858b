/** A research, or a step of one, that came to nothing. The message is words for the chat, or for the model. */
export class ResearchError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ResearchError'
  }
}
