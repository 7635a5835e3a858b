/**
 * What an error says, not scrubbed. What others throw may be anything, also something that throws when it is read; this
 * never does.
 */
export function errorText(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'an error that cannot be shown'
  }
}
