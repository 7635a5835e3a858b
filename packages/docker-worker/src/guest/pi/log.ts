import { writeSync } from 'node:fs'

/**
 * One line of JSON on stdout: what happened, in names and numbers. Diagnostics only: nobody parses them, and no text
 * of a conversation is in them.
 */
export function logEvent(event: string, facts: Readonly<Record<string, unknown>> = {}): void {
  try {
    writeSync(1, `${JSON.stringify({ event, ...facts })}\n`)
  } catch {
    // Nobody listens.
  }
}
