import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { BotError } from '../errors.ts'
import type { Receipt } from '../ledger.ts'
import { redactedJson } from '../redacted-json.ts'

/** Options of {@link AuditLog}. */
export interface AuditOptions {
  /** Absolute path. Its directory is made when missing, for this account alone. */
  readonly path: string
  /** When a file would have more bytes, a new one begins; default 10 MiB. */
  readonly maxBytes?: number
  /** How many older files are kept beside it, as `PATH.1` (the youngest) and so on; default 10. */
  readonly keep?: number
  /** True: what was said is written too, and what went wrong in a worker’s words. Keys never are. */
  readonly content?: boolean
  /** Called once when the file cannot be written, and again after it could. */
  readonly onProblem: (problem: string) => void
  readonly now?: () => Date
}

/** A line: what happened and the facts about it. */
export type AuditEvent =
  | { readonly event: 'start' | 'stop'; readonly [fact: string]: unknown }
  | { readonly event: 'keys_problem'; readonly problem: string }
  | { readonly event: 'message' | 'reply'; readonly channel: string; readonly [fact: string]: unknown }
  | ReturnType<typeof turnFacts>

const MAX_BYTES = 10 * 2 ** 20
const KEEP = 10

/**
 * The operator's record: a JSON object per line, mode 0600, replaced by a new file when it is large. Each line has
 * `time` and `run`, the id of this start of the bot: fingerprints of one run can be compared with each other and with
 * no others.
 */
export class AuditLog {
  readonly content: boolean
  readonly #options: AuditOptions
  readonly #run = randomBytes(6).toString('hex')
  #file: { readonly fd: number; bytes: number } | undefined
  #broken = false

  /** @throws BotError `audit` when the file cannot be written. */
  constructor(options: AuditOptions) {
    this.#options = options
    this.content = options.content === true
    try {
      mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 })
      this.#file = this.#open()
    } catch (cause) {
      throw BotError.isInstance(cause) ? cause : this.#refuse(cause)
    }
  }

  /** Writes a line. Never throws: a full disk must not end turns. */
  write(event: AuditEvent): void {
    const { now = () => new Date(), maxBytes = MAX_BYTES, onProblem, path } = this.#options
    const line = `${redactedJson({ time: now().toISOString(), run: this.#run, ...event })}\n`
    const bytes = Buffer.byteLength(line)
    try {
      if (this.#file !== undefined && this.#file.bytes > 0 && this.#file.bytes + bytes > maxBytes)
        this.#rotate()
      this.#file ??= this.#open()
      writeSync(this.#file.fd, line)
      this.#file.bytes += bytes
      this.#broken = false
    } catch (cause) {
      if (this.#broken) return
      this.#broken = true
      const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
      onProblem(`WARNING: the audit log ${path} cannot be written (${code}): turns go on without a record.`)
    }
  }

  /** Writes the record of a turn that is over. */
  turn(receipt: Receipt, mode: string | undefined): void {
    this.write(turnFacts(receipt, mode, this.content))
  }

  /** Idempotent. */
  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.fd)
    this.#file = undefined
  }

  #open(): { fd: number; bytes: number } {
    const { path } = this.#options
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW
    const fd = openSync(path, flags | constants.O_NONBLOCK, 0o600)
    const stats = fstatSync(fd)
    const uid = process.geteuid?.()
    if (stats.isFile() && (uid === undefined || stats.uid === uid) && (stats.mode & 0o077) === 0) {
      return { fd, bytes: stats.size }
    }
    closeSync(fd)
    throw new BotError(
      'audit',
      `The audit log ${path} must be a file of this account. Run: chmod 600 ${path}`,
    )
  }

  #rotate(): void {
    const { path, keep = KEEP } = this.#options
    this.close()
    if (keep === 0) rmSync(path, { force: true })
    for (let age = keep; age > 0; age -= 1) {
      const from = age === 1 ? path : `${path}.${age - 1}`
      try {
        renameSync(from, `${path}.${age}`)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
  }

  #refuse(cause: unknown): BotError {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    return new BotError(
      'audit',
      `The audit log ${this.#options.path} cannot be opened (${code}). Name another path in "audit", or mend its directory.`,
      { cause },
    )
  }
}

function turnFacts(receipt: Receipt, mode: string | undefined, content: boolean) {
  const { turnId, channel, speaker, driver, durationMs, ok = false, category, cause } = receipt
  const { payments, modelCalls, toolCalls, refusals, tokens, cost } = receipt
  return {
    event: 'turn' as const,
    turnId,
    channel,
    speakerId: speaker.id,
    speakerName: speaker.name,
    ...(mode === undefined ? {} : { mode }),
    driver,
    outcome: ok ? 'ok' : (category ?? 'failed'),
    durationMs,
    keys: payments,
    modelCalls,
    // The names may be the model's words.
    toolCalls: content ? toolCalls : toolCalls.length,
    refusals,
    tokens,
    cost,
    ...(content && cause !== undefined ? { cause } : {}),
  }
}
