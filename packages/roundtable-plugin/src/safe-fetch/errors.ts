const brand = Symbol.for('sandbox.safe-fetch.error')

/**
 * Every code of {@link SafeFetchError}:
 *
 * - `options_invalid`: an option or a header is wrong; the message names it
 * - `unsafe_url`: an address that must not be asked ({@link UnsafeUrlError})
 * - `too_large`: the answer is larger than allowed ({@link ResponseTooLargeError})
 * - `unreachable`: no connection, or it broke off
 * - `timeout`: not done within `timeoutMs`
 * - `redirects`: too many, or one without a target
 * - `encoding`: the answer is in a content coding that is not read, or is broken in it
 */
export type SafeFetchErrorCode =
  | 'options_invalid'
  | 'unsafe_url'
  | 'too_large'
  | 'unreachable'
  | 'timeout'
  | 'redirects'
  | 'encoding'

/** An error of `safeFetch`. The message may name the host that was asked, never a header or a body. */
export class SafeFetchError extends Error {
  readonly code: SafeFetchErrorCode

  constructor(code: SafeFetchErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'SafeFetchError'
    this.code = code
    Object.defineProperty(this, brand, { value: true })
  }

  /** True for an error of this class, whichever copy of the package made it. */
  static isInstance(value: unknown): value is SafeFetchError {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
  }
}

/** The address, or one that it leads to, must not be asked: a scheme, a port, a name or a number in it. */
export class UnsafeUrlError extends SafeFetchError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('unsafe_url', message, options)
    this.name = 'UnsafeUrlError'
  }
}

/** The answer is larger than allowed, on the wire or once decoded. What came is discarded. */
export class ResponseTooLargeError extends SafeFetchError {
  readonly status: number
  readonly headers: Headers

  constructor(maxBytes: number, answer: { readonly status: number; readonly headers: Headers }) {
    super('too_large', `The answer is larger than the ${maxBytes} bytes that are allowed.`)
    this.name = 'ResponseTooLargeError'
    this.status = answer.status
    this.headers = answer.headers
  }
}
