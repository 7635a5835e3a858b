import { writeSync } from 'node:fs'
import { GuestError, type GuestErrorCode } from './errors.ts'

/** Any other refusal of the host is 3, any other fault 1. */
const EXIT_CODES: Partial<Record<GuestErrorCode, number>> = {
  usage: 2,
  internal: 1,
  connection_lost: 4,
  timeout: 4,
  content_invalid: 5,
}

/**
 * Runs a guest's program to its end and ends the process, whatever else still waits in it. Exit codes: 0 done · 1 a
 * fault of its own · 2 wrong arguments · 3 refused by the host · 4 no connection to the host · 5 the operator's content
 * cannot be used.
 */
export function runGuest(name: string, program: (args: readonly string[]) => Promise<void>): void {
  program(process.argv.slice(2)).then(
    () => process.exit(0),
    (error: unknown) => {
      guestLog(name)(error instanceof Error ? error.message : 'failed')
      process.exit(GuestError.isInstance(error) ? (EXIT_CODES[error.code] ?? 3) : 1)
    },
  )
}

/** Writes one line to stderr: diagnostics only, nobody parses them. */
export function guestLog(name: string): (line: string) => void {
  return (line) => {
    try {
      writeSync(2, `${name}: ${line}\n`)
    } catch {
      // Nobody listens.
    }
  }
}
