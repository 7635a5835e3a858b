import { redact } from '@sandbox/credential-scope'

/**
 * JSON in which no text holds what looks like a credential. Each text is looked at before it is escaped: an escape
 * such as `\n` would hide where a credential begins.
 */
export function redactedJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'string' ? redact(part) : part))
}
