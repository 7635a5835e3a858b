const BRAND = Symbol.for('@sandbox/example-bot.BotError')

/**
 * Why the bot could not start or refused something:
 * - `usage`: a flag or an argument is wrong
 * - `config`: the configuration file cannot be used
 * - `state_dir`: the state directory is unsafe or cannot be used
 * - `engine`: a container engine was asked for and does not answer
 * - `provider`: a model service cannot be reached or does not take a call
 * - `page`: the web page cannot be served
 * - `monitor`: `/healthz` and `/metrics` cannot be served
 * - `audit`: the audit log cannot be written
 * - `discord`: Discord refused the bot or a message of it, or cannot be reached
 * - `message`: a message was refused before it became a turn
 */
export type BotErrorCode =
  | 'usage'
  | 'config'
  | 'state_dir'
  | 'engine'
  | 'provider'
  | 'page'
  | 'monitor'
  | 'audit'
  | 'discord'
  | 'message'

/** A failure that a person can mend. The message says what was wrong, where, and what to do. */
export class BotError extends Error {
  readonly code: BotErrorCode
  readonly [BRAND] = true

  constructor(code: BotErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'BotError'
    this.code = code
  }

  /** True for an error of this class, also from another copy of this module. */
  static isInstance(value: unknown): value is BotError {
    return value instanceof Error && (value as { [BRAND]?: unknown })[BRAND] === true
  }
}
